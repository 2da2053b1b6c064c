"""Methods that try whether a path carries what was agreed: Ethernet services (ITU-T Y.1564), TCP (RFC 6349)."""
