"""One examination a file, found by the registry."""
