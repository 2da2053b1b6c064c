"""``nicbench prove``: what a port can be relied on for, tried with frames, written down, and read by later runs.

`loop` is the two ports with the cable between them, `abilities` are what is tried, `proof` is the record.
"""
