"""The text of a study around its results: question, key findings, procedures, and how to repeat the run."""
