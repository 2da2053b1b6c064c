"""The loss ledger: where on the path from sender to receiver frames disappeared, by whose counter, and what remains."""
