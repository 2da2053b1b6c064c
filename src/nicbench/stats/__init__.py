"""Statistics of trials and rounds: latency distributions, rates of film frames, summaries of repeated numbers. Pure."""
