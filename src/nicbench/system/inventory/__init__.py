"""What a host is: facts for the report and for repeating a run. A fact is a class in ``facts/``."""
