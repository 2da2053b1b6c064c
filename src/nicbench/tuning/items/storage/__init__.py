"""Settings of file systems, drives and servers of files."""
