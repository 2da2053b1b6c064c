"""Settings of the kernel and of its network stack."""
