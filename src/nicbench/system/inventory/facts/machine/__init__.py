"""What the machine is made of: processors, memory, drives, firmware, fans."""
