"""The commands. ``COMMANDS`` of each file names those in it, each a function or a group of commands."""
