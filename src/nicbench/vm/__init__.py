"""The lab in a virtual machine: the kernel that it boots, the emulator that it boots in."""
