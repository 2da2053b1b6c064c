"""The answer in words: the first sentence of a report, of a comparison and of a run in a list, and what follows it.

A method declares what its answer is made of (core/table.py: sentences, a statement, the goals of a search). Only this
package composes sentences from it. Every number is one of the results'; none is added.
"""
