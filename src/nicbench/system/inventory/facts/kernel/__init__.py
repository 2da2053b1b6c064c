"""The operating system: its kernel, settings and software."""
