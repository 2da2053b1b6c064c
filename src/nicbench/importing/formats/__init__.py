"""The files that testers export: each format is a file here, found by its ``kind``."""
