"""The page of a comparison of runs: what differs first, then every value of all of them side by side."""
