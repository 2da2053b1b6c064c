"""Values of many runs: read once into an index, selected by what they have in common, and the changes among them."""
