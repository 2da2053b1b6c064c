"""Which way a value is better, by its name, which carries its unit."""

from __future__ import annotations

from typing import Final

_HIGHER: Final = ("frames_per_s", "bits_per_s", "bytes_per_s", "transactions_per_s", "back_to_back_frames")
_LOWER: Final = ("_time_ms", "_time_ns", "loss_percent", "_cycles_per_packet")
_RETURNED: Final = "returned_percent"


def higher_is_better(value: str) -> bool | None:
    """None of a value that is neither: a ratio of two tools, how many requests there were."""
    if value.endswith(_HIGHER) or value == _RETURNED:
        return True
    if value.endswith(_LOWER) or value.startswith(("latency_", "completion_", "lateness_", "pdv_")):
        return False
    return None
