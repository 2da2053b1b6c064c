"""The lake: what many runs measured, as monthly Parquet files for a million of them. Run folders stay the truth.

``gathering.gather`` appends runs; ``searching`` and ``figures`` read. This module loads nothing: a list needs little.
"""
