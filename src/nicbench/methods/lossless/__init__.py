"""Lossless Ethernet: ECN marks, pause frames and PFC, head room."""
