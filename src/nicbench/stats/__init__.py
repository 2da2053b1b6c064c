"""Statistics of trials, rounds and runs: distributions, intervals, tests, comparisons, and their sentences."""
