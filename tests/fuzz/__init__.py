"""Fuzzers of what nicbench reads from others; CONTRIBUTING.md says how they are run."""
