"""Where drop counters come from: one file a source, found by the registry. Adding a place is adding a file."""
