"""Judging trials: whether the tester and its machine were fit while it measured, and what to do when not. Pure."""
