"""Studies as files: archives of runs that others repeat, and the comparison of what both found."""
