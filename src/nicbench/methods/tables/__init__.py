"""Methods for the tables that a DUT keeps: addresses of a switch (RFC 2889), connections of a NAT or firewall."""
