"""Tests of proofs of ports."""
