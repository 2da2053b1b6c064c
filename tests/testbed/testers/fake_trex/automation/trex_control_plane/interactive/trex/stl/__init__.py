"""Its stateless API."""
