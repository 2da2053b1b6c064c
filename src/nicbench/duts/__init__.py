"""DUTs: what is measured, one kind a file. Modules that begin with an underscore are what the kinds share."""
