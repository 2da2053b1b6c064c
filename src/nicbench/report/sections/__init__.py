"""The sections of a page: a function each, from what is known to blocks. Layouts put them in order."""
