"""How many editors one server feeds: instances against a target, over their number and over runs (docs/studies.md)."""
