"""What tools print: any output is read or refused, and impossible figures are found."""

from __future__ import annotations

import contextlib
import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workloads.goldens import GOLDEN, job

from nicbench.core.connections import ConnectionsSpec
from nicbench.core.round import Figures, Flow, FramesSpec, Job, JobSpec, RequestLatency, StreamFigures
from nicbench.workloads.base import Output, Workload, WorkloadError
from nicbench.workloads.play import kinds
from nicbench.workloads.tool_output import find_implausible

# Whatever a tool writes, its parser gives figures or a WorkloadError, and nothing else, in bounded time.

KINDS = {kind: offered() for kind, offered in kinds().items()}
STREAM, ASKING = JobSpec(duration_s=1), JobSpec(operation="request-response", duration_s=1)
ASKS = (
    STREAM,
    STREAM.replace(transport="udp"),
    STREAM.replace(direction="reverse"),
    STREAM.replace(direction="both"),
    ASKING,
    STREAM.replace(transport="rdma"),
    ASKING.replace(transport="rdma"),
    JobSpec(operation="memory", duration_s=5),
    JobSpec(operation="frames", duration_s=1, frames=FramesSpec(task="read", directory="/mnt/d1")),
    JobSpec(operation="connections", duration_s=1, connections=ConnectionsSpec(task="connect", rate_per_s=100.0)),
)
RECORDED = sorted(GOLDEN.glob("*.txt"))
PIECES = (
    *(
        '{"end":',
        "{",
        "[",
        '"a"',
        ",",
        ":",
        "NaN",
        "1e999",
        "-1",
        "9" * 400,
        "null",
        "true",
        "\x00",
        "\x1b[31m",
        "é",
        "\n",
    ),
    *("nuttcp-t: ", "nuttcp-r: ", "megabytes=", "real_seconds=", "rate_Mbps=", "inf", " ", "#bytes ", "#iterations "),
    *("BW average[MB/sec]", "t_min[usec]", "1, 2.5\n", "0, 1.0, 2.0, 3.0\n", "[Valid Duration] RunTime=", " sec; "),
    *("avg-latency=", "(std-dev=", "THROUGHPUT=", "    latency  =  ", " ns\n", "    bw = ", " bits/sec\n", "nan"),
    *("stream: memory rate: ", " MB read/sec, ", " MB write/sec, ", "(instance 0)", "percentile 99.000 = ", "RunTime="),
)


def read(workload: Workload, asked: Job, text: str) -> None:
    output = Output(text, stderr=text, status=0)
    workload.complaint(output)
    workload.parse_version(text)
    with contextlib.suppress(WorkloadError):
        find_implausible(asked, workload.parse(asked, output, output), 1e9)


@pytest.mark.parametrize("kind", KINDS)
@given(pieces=st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=40), ask=st.sampled_from(ASKS))
def test_any_text_gives_figures_or_an_error_that_is_ours(kind: str, pieces: list[str], ask: JobSpec) -> None:
    read(KINDS[kind], job(kind, ask), "".join(pieces))


@pytest.mark.parametrize("kind", KINDS)
def test_recordings_that_were_damaged_give_figures_or_an_error_that_is_ours(kind: str, draw: random.Random) -> None:
    texts = [path.read_text() for path in RECORDED if path.name.startswith(kind)]
    for _ in range(60):
        text = list(draw.choice(texts))
        for _ in range(draw.randint(1, 6)):
            at = draw.randrange(len(text))
            what = draw.choice(("drop", "repeat", "put", "cut"))
            if what == "drop":
                del text[at : at + draw.randint(1, 40)]
            elif what == "repeat":
                text[at:at] = text[at : at + draw.randint(1, 40)]
            elif what == "put":
                text[at:at] = list(draw.choice(PIECES))
            else:
                del text[at:]
            if not text:
                break
        read(KINDS[kind], job(kind, draw.choice(ASKS)), "".join(text))


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_of_thousands_of_digits_gives_figures_or_an_error_that_is_ours(kind: str, draw: random.Random) -> None:
    for text in (path.read_text() for path in RECORDED if path.name.startswith(kind)):
        numbers = list(re.finditer(r"\d+", text))
        for found in draw.sample(numbers, min(8, len(numbers))):
            read(KINDS[kind], job(kind, draw.choice(ASKS)), f"{text[: found.start()]}{'9' * 5000}{text[found.end() :]}")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", KINDS)
def test_a_flood_of_one_word_is_read_in_time_that_grows_no_faster_than_it(kind: str) -> None:
    # What takes a step for each pair of its characters would take a day.
    for piece in (*PIECES, "a", "a=", "1", "1 ", "stream 1 ", "-", "[[", '{"a":'):
        for ask in (STREAM, ASKING):
            read(KINDS[kind], job(kind, ask), piece * (100_000 // len(piece)))


# Figures that cannot be so are refused, with the reason; those that can are not.

GIGABIT = 1e9
FLOW = {
    "direction": "forward",
    "sent_bytes": 1_176_000_000,
    "received_bytes": 1_175_000_000,
    "sent_bits_per_s": 940.8e6,
    "received_bits_per_s": 940e6,
    "duration_s": 10.0,
}


def refused(ask: JobSpec | None = None, link_bits_per_s: float | None = GIGABIT, **changed: Any) -> str:
    figures = Figures(flows=(Flow(**{**FLOW, **changed}),))
    return "; ".join(find_implausible(job("iperf3", ask or JobSpec(duration_s=10)), figures, link_bits_per_s))


def asked(**latency: Any) -> str:
    figures = Figures(latency=RequestLatency(basis="round trip", **latency))
    return "; ".join(find_implausible(job("sockperf", JobSpec(operation="request-response", duration_s=1)), figures))


def test_an_ordinary_measurement_is_believed() -> None:
    assert not refused()
    assert not asked(count=9, minimum_ns=1e3, mean_ns=2e3, maximum_ns=9e3, percentiles_ns={"50": 2e3, "99": 9e3})


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"received_bits_per_s": float("nan")}, "received_bits_per_s is nan"),
        ({"sent_bits_per_s": float("inf")}, "sent_bits_per_s is inf"),
        ({"retransmissions": -3}, "retransmissions is -3"),
        ({"retransmissions": 10**400}, "retransmissions has more digits than any count"),
        ({"retransmissions": -(10**5000)}, "retransmissions has more digits than any count"),
        ({"received_bits_per_s": 0.0, "sent_bits_per_s": 0.0}, "nothing arrived"),
        ({"received_bits_per_s": None, "sent_bits_per_s": None}, "nothing arrived"),
        ({"duration_s": 5.0, "received_bytes": None}, "it took 5 s, and 10 s were asked for"),
        ({"duration_s": 30.0, "received_bytes": None}, "it took 30 s"),
        ({"received_bytes": 1_300_000_000}, "1300000000 bytes arrived of 1176000000"),
        ({"received_bytes": 500_000_000}, "where its bytes and seconds make 4e+08"),
        ({"datagrams": 10, "lost_datagrams": 11}, "11 datagrams lost of 10"),
        ({"direction": "reverse"}, "nothing is said of the direction forward"),
        (
            {"streams": (StreamFigures(received_bits_per_s=4e8), StreamFigures(received_bits_per_s=4e8))},
            "its 2 streams make 8e+08 bit/s together, and it says 9.4e+08",
        ),
        (
            {"streams": (StreamFigures(received_bits_per_s=1e308), StreamFigures(received_bits_per_s=1e308))},
            "its 2 streams make inf bit/s together",
        ),
    ],
)
def test_a_contradiction_is_refused_with_its_reason(changed: dict[str, Any], why: str) -> None:
    assert why in refused(**changed)


def test_payload_never_goes_faster_than_the_link_but_for_a_percent() -> None:
    fast = {"sent_bytes": None, "received_bytes": None}
    assert not refused(**fast, received_bits_per_s=1.009e9)
    assert "1.02e+09 bit/s of payload over a link of 1e+09" in refused(**fast, received_bits_per_s=1.02e9)
    assert not refused(link_bits_per_s=None, **fast, received_bits_per_s=1e12)
    assert "more than anything carries" in refused(link_bits_per_s=None, **fast, received_bits_per_s=2e13)


def test_a_short_transfer_may_have_begun_before_its_clock() -> None:
    ask = JobSpec(total_bytes=1_000_000)
    short = {"duration_s": 0.008, "sent_bytes": 1_000_000, "received_bytes": 1_000_000}
    assert not refused(ask, **short, received_bits_per_s=1e9)
    short["duration_s"] = 0.004
    assert not refused(ask, **short, received_bits_per_s=2e9)
    assert "1000000 bytes were sent of 2000000" in refused(
        JobSpec(total_bytes=2_000_000), **short, received_bits_per_s=2e9
    )


def test_a_sender_alone_may_fill_its_socket_buffer() -> None:
    sent = {"received_bytes": None, "received_bits_per_s": None, "sent_bytes": None}
    assert not refused(**sent, sent_bits_per_s=1.012e9)
    assert "over a link" in refused(**sent, sent_bits_per_s=1.05e9)
    # Of datagrams a host throws away what its link does not take.
    assert not refused(JobSpec(duration_s=10, transport="udp"), **sent, sent_bits_per_s=3e9)


@pytest.mark.parametrize(
    ("latency", "why"),
    [
        ({"mean_ns": 0.0}, "a mean latency of 0 ns"),
        ({"minimum_ns": 9e3, "mean_ns": 2e3, "maximum_ns": 10e3}, "do not rise"),
        ({"mean_ns": 2e3, "maximum_ns": 1e3}, "do not rise"),
        ({"mean_ns": 2e3, "percentiles_ns": {"50": 9e3, "99.9": 3e3}}, "its percentiles do not rise"),
        ({"mean_ns": 2e3, "maximum_ns": 4e3, "percentiles_ns": {"99": 9e3}}, "99 % within 9000 ns, more than"),
        ({"count": 0, "mean_ns": 1e3}, "not one request was answered"),
        ({}, "no latency is said"),
        ({"mean_ns": float("nan")}, "latency.mean_ns is nan"),
    ],
)
def test_latencies_that_contradict_themselves_are_refused(latency: dict[str, Any], why: str) -> None:
    assert why in asked(**latency)


def test_control_characters_are_kept_out_of_what_is_shown() -> None:
    figures = Figures(flows=(Flow(**FLOW),), notes=("fine", "\x1b]0;title\x07"))
    assert find_implausible(job("iperf3", JobSpec(duration_s=10)), figures) == ("notes holds control characters",)
