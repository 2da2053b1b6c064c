"""What is tried of a port, by theme."""
