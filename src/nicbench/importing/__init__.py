"""Results that somebody else measured, from a CSV to a run folder. Parts are pure but the last, ``folder.py``."""
