"""The datasheet: per test setup, settings, results and figure, as published zero-loss reports have it."""
