"""What all parts share: counts, trials, rounds, verdicts, rates, results and plans; units, events and errors."""
