"""The names of the files of a run folder that more than one part of the store knows."""

from __future__ import annotations

from typing import Final

BENCH: Final = "bench.yaml"
IMPORT: Final = "import.json"
"""In the place of the bench file, of results that were not measured here: how they were read."""
JOURNAL: Final = "journal.ndjson"
SUMMARY: Final = "summary.json"
PLAN: Final = "plan.json"
TAGS: Final = "tags.json"
ERROR: Final = "error.txt"
"""The traceback of a crash of nicbench itself."""
