"""The datasheet: setup, settings, results and figure of each test, in the form of published zero-loss reports."""
