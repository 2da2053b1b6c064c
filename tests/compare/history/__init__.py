"""Tests of values of many runs."""
