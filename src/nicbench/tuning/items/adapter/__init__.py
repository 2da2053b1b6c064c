"""Settings of network adapters and their interfaces."""
