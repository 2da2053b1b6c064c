"""The search for the best settings: which combination is tried next, and what was found."""
