"""The lake: what many runs measured, as monthly Parquet files for a million of them. Run folders stay the truth."""

from nicbench.lake.gathering import Gathered, gather
from nicbench.lake.place import FOLDER, Lake, find_lake

__all__ = ["FOLDER", "Gathered", "Lake", "find_lake", "gather"]
