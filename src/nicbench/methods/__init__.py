"""Ways of measuring, one file each; the registry finds them."""
