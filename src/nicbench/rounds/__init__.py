"""Rounds of workloads: played, judged, repeated, journaled."""
