"""Published results as built-in data sets: descriptors in ``sets``, their tables in ``data``; read as an import is."""
