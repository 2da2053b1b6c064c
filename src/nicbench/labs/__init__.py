"""Testbeds: made on the spot (veth, simulated) or of real ports (wired)."""
