"""Statistics of trials: latency distributions and summaries of repeated numbers. Pure."""
