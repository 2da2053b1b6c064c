"""Methods that measure what forwarding costs in energy."""
