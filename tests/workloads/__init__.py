"""Tests of the workloads: recorded outputs, fake tools, and the real ones in a lab."""
