"""Whatever a tool writes, its parser gives figures or a WorkloadError, and nothing else, in bounded time."""

from __future__ import annotations

import contextlib
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicbench.core.connections import ConnectionsSpec
from nicbench.core.frames import FramesSpec
from nicbench.core.round import Job, JobSpec
from nicbench.workloads.base import Output, Workload, WorkloadError
from nicbench.workloads.play import kinds
from nicbench.workloads.tool_output import find_implausible

from .goldens import GOLDEN, job

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


@pytest.mark.parametrize("kind", KINDS)
def test_a_flood_of_one_word_is_read_in_time_that_grows_no_faster_than_it(kind: str) -> None:
    # What takes a step for each pair of its characters would take a day.
    for piece in (*PIECES, "a", "a=", "1", "1 ", "stream 1 ", "-", "[[", '{"a":'):
        for ask in (STREAM, ASKING):
            read(KINDS[kind], job(kind, ask), piece * (100_000 // len(piece)))
