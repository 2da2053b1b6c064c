"""The views, a file each: its addresses, and what its script in ``static/views`` asks the server for."""
