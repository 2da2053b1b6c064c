"""Statistics on the page: summaries over runs, comparisons of configurations, and drift."""
