"""One file for each tool: which commands do what was asked, and what its output means."""
