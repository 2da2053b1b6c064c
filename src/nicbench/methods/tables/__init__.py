"""Methods for the tables that a DUT keeps: the addresses of a switch (RFC 2889), the connections of a NAT or firewall."""
