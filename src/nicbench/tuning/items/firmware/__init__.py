"""Settings in the firmware of machines and adapters."""
