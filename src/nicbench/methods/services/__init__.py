"""Methods that hold services against what was agreed for them."""
