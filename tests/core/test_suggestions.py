"""The name that was probably meant: what a newcomer writes leads to what nicbench calls it."""

from __future__ import annotations

import pytest

from nicbench.core.errors import nearest_name, suggest

METHODS = (
    "back-to-back",
    "broadcast-throughput",
    "frame-loss",
    "latency",
    "microburst",
    "tcp-throughput",
    "throughput",
)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("rfc2544-throughput", "throughput"),
        ("RFC2544_latency", "latency"),
        ("throughputs", "throughput"),
        ("tcp_throughput", "tcp-throughput"),
        ("tcp", "tcp-throughput"),
        ("loss", "frame-loss"),
        ("back2back", "back-to-back"),
        ("LATENCY", "latency"),
        ("--", None),
        ("", None),
        ("power", None),
    ],
)
def test_the_name_that_was_meant_is_found(given: str, meant: str | None) -> None:
    assert nearest_name(given, METHODS) == meant


def test_where_nothing_is_alike_all_names_are_told() -> None:
    assert suggest("quality", ("latency", "power"), "test method") == "known test methods: `latency`, `power`"
