"""What a study says around its results: the question, the key findings, how each test is made, and how to repeat it."""
