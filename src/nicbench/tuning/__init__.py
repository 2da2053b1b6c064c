"""Changes to a machine, each with its undo written down first; and what uses them."""
