"""Testers: what can send the frames and read them back, one file each, chosen by ``tester: {kind: ...}``."""
