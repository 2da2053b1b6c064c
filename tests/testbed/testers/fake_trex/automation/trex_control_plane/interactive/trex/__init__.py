"""A stand-in for TRex's Python client."""
