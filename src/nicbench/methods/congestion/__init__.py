"""Methods for ports that are sent more than they carry: congestion control (RFC 2889) and microbursts (RFC 8239)."""
