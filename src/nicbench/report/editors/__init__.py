"""How many editors one server feeds: rates of instances against a target, by their number (docs/studies.md)."""
