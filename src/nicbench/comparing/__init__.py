"""Results beside results: which are of the same point, and what may be said of two sides (configurations, or runs).

``stats`` has the numbers and knows no result; what is here knows results and their methods, and no folder and no page.
Nothing is imported here: ``compared`` needs NumPy, which takes long to load, and ``quantities`` does not.
"""
