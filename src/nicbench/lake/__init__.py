"""The lake: what many runs measured, as monthly Parquet files for a million of them. Run folders stay the truth.

``gathering.gather`` appends runs; ``searching`` and ``figures`` read. This module loads nothing: a list needs little.

``lake/gathering.py`` reads run folders and writes each month of each table anew (``tables.py``):
rows in a total order, row groups of a fixed size, one file for each month. So equal runs are equal bytes, nothing
needs compacting, and a rename is all that can be interrupted. ``headline`` is written last: a run is in the lake when
its headline is. ``searching.py`` has the conditions of ``store/index.py``, and looks at a name of a column's dictionary
once; ``tests/lake/test_gathering.py`` holds both against each other. It is pyarrow alone: DuckDB, which answered the
same searches over a million runs in 0.03 to 0.8 s where this takes 0.05 to 0.5 s, would add 66 MB; it is among the
packages of the documentation, whose queries are tried.
"""
