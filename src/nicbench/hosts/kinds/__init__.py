"""The kinds of hosts, one file each, found by their ``kind``."""
