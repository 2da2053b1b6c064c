"""Published results as built-in data sets: descriptors in ``sets``, tables in ``data``, read like any import."""
