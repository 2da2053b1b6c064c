"""Where commands run and files are read and written: this machine, and namespaces of it."""
