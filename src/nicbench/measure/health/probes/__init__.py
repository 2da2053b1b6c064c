"""What is asked of the hardware, by theme: probes are found by the registry."""
