"""nicbench: a NIC performance lab in one tool."""

__version__ = "0.1.0"
