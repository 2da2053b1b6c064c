"""Statistics on the page: what runs come to, what may be said of two configurations, and whether anything drifted."""
