"""Kinds of shares: by which servers folders of a host are given to clients, one kind a file. See ``base``."""
