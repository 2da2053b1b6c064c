"""The answer in words: the first sentence of a report, of a comparison and of a run in a list, and what follows it.

A method says what its answer is made of (core/table.py: sentences, a statement, the goals of a search); here, and here
alone, sentences are composed of it. Numbers are the results' and nothing beyond.
"""
