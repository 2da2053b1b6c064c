"""Methods for frames that several ports receive: to multicast groups (RFC 3918), to all stations (RFC 2889 5.10)."""
