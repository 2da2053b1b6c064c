"""Searches: they see ``measure(load, duration)`` and nothing else. Add one by adding a file with a ``Search`` in it."""
