"""Two or more results, configurations or runs: what differs, whether they may be compared, what may be claimed."""
