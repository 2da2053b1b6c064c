"""Workloads: the tools that people trust do the sending; nicbench starts them, waits, and doubts what they say."""
