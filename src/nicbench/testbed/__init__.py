"""Testbeds: labs, devices under test, testers, and what is made of ports before a run."""
