"""The sections of a report: each function makes the blocks of one section; layouts put the sections in order."""
