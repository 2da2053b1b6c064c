"""Kinds of exports, a file each; the registry finds them by their ``kind``."""
