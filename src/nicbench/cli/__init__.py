"""The command line: thin commands over the library. Messages go to stderr, results to stdout."""
