"""Columns that several methods take of imported results: the frame size, loads, rates, and what came back."""

from __future__ import annotations

from typing import Final

from nicbench.model.import_table import ImportColumn

SIZE: Final = ImportColumn(
    value="frame_bytes",
    name="frame size",
    quantity="frame_size",
    also=("frame", "size", "framesize", "packet size", "frame length"),
    tells_apart=True,
    is_required=True,
)
LOAD: Final = ImportColumn(
    value="load_percent", name="load", quantity="load", also=("offered load",), tells_apart=True, is_required=True
)
LOAD_RATE: Final = ImportColumn(
    value="load_frames_per_s", name="load rate", quantity="frame_rate", also=("offered rate", "tx rate")
)
LINE_RATE: Final = ImportColumn(
    value="line_rate_frames_per_s", name="line rate", quantity="frame_rate", also=("theoretical rate",)
)
OFFERED: Final = ImportColumn(
    value="offered_frames", name="offered frames", quantity="count", also=("sent frames", "tx frames", "frames sent")
)
RETURNED: Final = ImportColumn(
    value="returned_frames",
    name="returned frames",
    quantity="count",
    also=("received frames", "rx frames", "frames received"),
)
LOST: Final = ImportColumn(value="lost_frames", name="lost frames", quantity="count", also=("frames lost",))
LOSS: Final = ImportColumn(
    value="loss_percent", name="loss", quantity="percent", also=("frame loss", "frame loss rate", "packet loss")
)
RETURNED_SHARE: Final = ImportColumn(
    value="returned_percent", name="returned", quantity="percent", also=("returned intact", "frames returned")
)

COUNTS: Final = (OFFERED, RETURNED, LOST)
COUNTS_RISE: Final = (("returned_frames", "offered_frames"), ("lost_frames", "offered_frames"))
COUNTED_SHARES: Final = (
    ("loss_percent", "lost_frames", "offered_frames"),
    ("returned_percent", "returned_frames", "offered_frames"),
)


def interval(column: ImportColumn) -> tuple[ImportColumn, ...]:
    """The column, and those of the two ends of its interval: "PDR", "PDR lower", "PDR upper"."""
    parts = []
    for part in ("lower", "upper"):
        names = tuple(f"{name} {part}" for name in (column.name, *column.also))
        parts.append(column.model_copy(update={"bound": part, "name": names[0], "also": names[1:]}))
    return (column.model_copy(update={"bound": "value"}), *parts)
