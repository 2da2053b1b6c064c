"""Runs beside each other: which are meant, whether they may be compared, what differs, and one summary of all."""
