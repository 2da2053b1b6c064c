"""Whether a run is worse than others before it: what may be compared, which values, and what is shown of each."""
