"""The frozen types every part shares: counts, verdicts, rates, trials, results. They import nothing above them."""
