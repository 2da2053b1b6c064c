"""Methods for switches: what they know of addresses (RFC 2889)."""
