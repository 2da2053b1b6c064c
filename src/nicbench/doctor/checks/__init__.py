"""Examinations by theme, found by the registry."""
