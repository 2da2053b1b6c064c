"""Methods of TCP connections, with HTTP and TLS on them: the key performance indicators of RFC 9411."""
