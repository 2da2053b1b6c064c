"""Where drop counters come from: sources by theme, found by the registry."""
