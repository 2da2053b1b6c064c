"""Export: a run's results for other programs. It reads a run folder, rounds nothing, and touches no host."""
