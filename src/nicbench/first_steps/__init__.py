"""The first bench file: what this machine has, what its user wants, and the file that follows from both.

`ports` and `cabling` look at the machine, `wishes` says what can be asked for, `writing` makes the text, and `tables`
finds out how a table of results can be imported. Nothing here asks questions: `cli` does.
"""
