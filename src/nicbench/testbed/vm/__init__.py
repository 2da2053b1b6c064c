"""Virtual machines: finds their kernel and emulator, boots them, and places them on this machine."""
