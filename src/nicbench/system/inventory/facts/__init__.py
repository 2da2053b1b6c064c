"""Facts by theme, found by the registry. ``base.py`` has what they share."""
