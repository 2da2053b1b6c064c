"""Settings of memory: huge pages, merging."""
