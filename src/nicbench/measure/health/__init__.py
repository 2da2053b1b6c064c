"""The health gate: what a host's hardware says of itself before and after each trial, and what rose in between."""
