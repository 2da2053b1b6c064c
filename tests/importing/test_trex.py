"""Statistics of TRex's stateless client to results of frame loss and latency, and what is no such file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nicbench.core.errors import UsageError, WrongFileError
from nicbench.importing.columns import ImportOptions
from nicbench.importing.folder import Dialect, GivenFile, import_files
from nicbench.importing.formats.documents import TrexStatistics
from nicbench.importing.results import ImportedResults, method_of

STATS: dict[str, Any] = {
    "0": {"opackets": 1000, "ipackets": 0, "obytes": 60000, "ibytes": 0},
    "1": {"opackets": 0, "ipackets": 990, "obytes": 0, "ibytes": 59400},
    "total": {"opackets": 1000, "ipackets": 990, "obytes": 60000, "ibytes": 59400},
    "global": {"cpu_util": 3.5, "queue_full": 0},
    "flow_stats": {},
    "latency": {
        "global": {"bad_hdr": 0, "old_flow": 0},
        "5": {
            "latency": {"average": 21.5, "total_min": 10, "total_max": 84, "jitter": 3, "histogram": {"20": 7}},
            "err_cntrs": {"dropped": 0, "out_of_order": 0},
        },
        "7": {"latency": {"average": 30, "total_max": 90}, "err_cntrs": {}},
    },
}
GIVEN = {"frame size": "64", "load [% of line rate]": "50"}


def imported(stats: object, method: str, **said: Any) -> ImportedResults:
    text = stats if isinstance(stats, str) else json.dumps(stats)
    files = [GivenFile(Path("stats.json"), text.encode())]
    return import_files(files, TrexStatistics, method_of(method), ImportOptions(given=GIVEN, **said), Dialect())


def test_frames_of_all_ports_are_a_frame_loss() -> None:
    (result,) = imported(STATS, "frame-loss").results
    assert (result.values["offered_frames"], result.values["returned_frames"]) == (1000, 990)
    assert result.values["loss_percent"] == 1.0
    assert (result.parameters["frame_bytes"], result.parameters["load_percent"]) == (64, 50.0)


def test_latencies_are_those_of_each_packet_group() -> None:
    first, second = imported(STATS, "latency", configurations=("packet group",)).results
    names = ("latency_minimum_ns", "latency_mean_ns", "latency_maximum_ns")
    assert [first.values.get(name) for name in names] == [10_000, 21_500, 84_000]
    assert [second.values.get(name) for name in names] == [None, 30_000, 90_000]
    assert (first.configuration, second.configuration) == ("5", "7")
    (chosen,) = imported(STATS, "latency", where={"packet group": "7"}).results
    assert chosen.values["latency_maximum_ns"] == 90_000


def test_two_groups_are_not_thrown_together() -> None:
    with pytest.raises(WrongFileError, match="about the same"):
        imported(STATS, "latency")


def test_more_than_was_sent_is_refused() -> None:
    wrong = {**STATS, "total": {"opackets": 10, "ipackets": 11}}
    with pytest.raises(WrongFileError, match=r"stats.json:1:1: "):
        imported(wrong, "frame-loss")


@pytest.mark.parametrize(
    ("stats", "method", "refused"),
    [
        ("", "latency", "is no JSON"),
        ("[" * 100_000, "latency", "is no JSON"),
        ({"0": {}}, "frame-loss", "has no total"),
        ({"total": {"opackets": "many", "ipackets": 1}}, "frame-loss", "total.opackets is no number"),
        ({"total": {"opackets": 1, "ipackets": 1}}, "latency", "there is no latency stream"),
        ({**STATS, "latency": {"5": []}}, "latency", "has no latency.5"),
        (STATS, "throughput", "nothing of `throughput`"),
    ],
)
def test_what_is_no_such_file_is_refused(stats: object, method: str, refused: str) -> None:
    with pytest.raises(UsageError, match=refused):
        imported(stats, method)
