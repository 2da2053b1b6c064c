"""Formats of files that testers export: each is a file here, found by its ``kind``."""
