"""Clocks of machines and adapters: what they are, and how one is mapped onto another."""
