"""A report as typed blocks: their model, how they are made of text, and how they become a document."""
