"""Devices under test, one kind a file. Modules that begin with an underscore hold what several kinds share."""
