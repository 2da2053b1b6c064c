"""Kinds of shares, one a file: the servers and mounts by which clients use folders of a host."""
