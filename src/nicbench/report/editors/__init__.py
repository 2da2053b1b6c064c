"""How many editors one server feeds: instances against a target, over their number and over runs (methods.md 1)."""
