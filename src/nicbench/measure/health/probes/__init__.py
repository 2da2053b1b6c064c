"""What is asked of the hardware: one file a probe, found by the registry."""
