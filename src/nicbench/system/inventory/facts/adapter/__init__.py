"""Network adapters as devices on the bus."""
