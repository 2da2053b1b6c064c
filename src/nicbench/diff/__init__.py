"""What differs between two runs, most important first: of their folders alone."""
