"""iperf3's JSON, as recorded from real versions, to results of streams; and what is no such file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nicbench.core.errors import UsageError, WrongFileError
from nicbench.importing.columns import ImportOptions, parse_link
from nicbench.importing.folder import Dialect, GivenFile, import_files
from nicbench.importing.formats.documents import Iperf3Json
from nicbench.importing.results import ImportedResults
from nicbench.methods.stream import Stream

RECORDED = Path(__file__).parents[1] / "golden/workloads"


def text_of(case: str) -> str:
    return (RECORDED / f"iperf3-{case}.client.txt").read_text()


def imported(*texts: str, **said: Any) -> ImportedResults:
    files = [GivenFile(Path(f"client {number}.json"), text.encode()) for number, text in enumerate(texts, 1)]
    return import_files(files, Iperf3Json, Stream, ImportOptions(**said), Dialect())


@pytest.mark.parametrize(
    ("case", "modes"),
    [
        ("3.12-tcp", ["TCP to the server, writes of 8192 bytes, 2 connections"]),
        ("3.12-tcp-reverse", ["TCP from the server, writes of 131072 bytes"]),
        (
            "3.12-tcp-bidir",
            [
                "TCP both ways at once, to the server, writes of 131072 bytes",
                "TCP both ways at once, from the server, writes of 131072 bytes",
            ],
        ),
        ("3.9-tcp-omit", ["TCP to the server, writes of 131072 bytes"]),
        ("3.12-tcp-bytes", ["TCP to the server, writes of 8192 bytes"]),
        ("3.12-udp", ["UDP to the server, writes of 1400 bytes"]),
        ("3.16-udp", ["UDP to the server, writes of 1398 bytes"]),
    ],
)
def test_what_was_sent_is_told_as_of_measured_streams(case: str, modes: list[str]) -> None:
    assert [one.parameters["mode"] for one in imported(text_of(case)).results] == modes


def test_a_throughput_is_what_the_receiver_got() -> None:
    text = text_of("3.12-tcp")
    (result,) = imported(text).results
    received = json.loads(text)["end"]["sum_received"]["bits_per_second"]
    assert result.values["throughput_bits_per_s"] == pytest.approx(received, rel=1e-14)
    assert result.values["retransmissions"] == json.loads(text)["end"]["sum_sent"]["retransmits"]
    assert result.parameters["workload"] == "iperf3 3.12"
    assert result.parameters["port"] == "port 198.18.90.2"
    assert result.imported is not None
    assert text.splitlines()[result.imported.line - 1].strip().startswith('"sum_received"')


def test_lost_datagrams_are_a_share_of_those_sent() -> None:
    text = text_of("3.16-udp")
    (result,) = imported(text).results
    end = json.loads(text)["end"]
    lost = 100.0 * end["sum_received"]["lost_packets"] / end["sum_sent"]["packets"]
    assert result.values["lost_datagrams_percent"] == pytest.approx(lost)


def test_several_files_of_the_same_are_told_apart_by_their_names() -> None:
    text = text_of("3.12-tcp")
    with pytest.raises(UsageError, match=r"client 2.json: is about the same as client 1.json") as refused:
        imported(text, text)
    assert "--configuration file" in str(refused.value)
    assert [one.configuration for one in imported(text, text, configurations=("file",)).results] == [
        "client 1",
        "client 2",
    ]
    ports = [one.parameters["port"] for one in imported(text, text, columns={"file": "port"}, ignore=("port",)).results]
    assert ports == ["port client 1", "port client 2"]


def test_more_than_the_link_carries_is_refused_with_its_place() -> None:
    with pytest.raises(WrongFileError, match=r"client 1.json:\d+:\d+: throughput .* the link carries no more"):
        imported(text_of("3.12-tcp"), link=parse_link("1 Mb/s"))


def changed(case: str, *path: str, to: object) -> str:
    whole = part = json.loads(text_of(case))
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = to
    return json.dumps(whole)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[1]", "no JSON object"),
        ("{}", "has no start"),
        ('{"event":"start"}\n{"event":"end"}', "is no JSON"),
        ((RECORDED / "iperf3-3.12-tcp.server.txt").read_text(), "written by iperf3's server"),
        (text_of("3.12-refused"), "unable to connect to server"),
        (text_of("3.12-tcp")[:2000], "is no JSON"),
        (changed("3.12-tcp", "start", "test_start", "protocol", to="SCTP"), "iperf3 sent sctp"),
        (changed("3.12-tcp", "end", "sum_received", "bits_per_second", to=None), "has no end.sum_received"),
        (changed("3.12-tcp", "end", "sum_received", "bits_per_second", to="9"), "is no number"),
        (changed("3.12-tcp", "end", "sum_received", "bits_per_second", to=-1.0), "cannot be"),
        (changed("3.12-tcp", "end", "sum_received", "bits_per_second", to=1e300), "cannot be"),
    ],
)
def test_what_is_no_such_file_is_refused(text: str, refused: str) -> None:
    with pytest.raises(WrongFileError, match=refused):
        imported(text)


def test_names_in_the_file_are_texts_and_no_more() -> None:
    text = changed("3.12-tcp", "start", "connecting_to", to={"host": "=cmd|\x1b[2J\n<b>" + "x" * 5000, "port": 1})
    (result,) = imported(text).results
    port = result.parameters["port"]
    assert port.isprintable()
    assert len(port) < 250
