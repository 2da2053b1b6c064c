"""Settings of CPUs: frequency, idle states, and who does which work."""
