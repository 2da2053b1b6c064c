"""The captures that a bench file names: read where they lie, so that tests know the sizes of their frames."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from nicbench.bench_file.frame_sizes import check_frame_sizes, largest_frame_bytes
from nicbench.bench_file.models import BenchFile, TestSpec
from nicbench.bench_file.problems import Problem, WrongBenchFileError, quote
from nicbench.bench_file.reader import Node, read
from nicbench.bench_file.sections import Step
from nicbench.core.capture import CaptureSizes, WrongCaptureError, read_sizes
from nicbench.core.errors import BenchFileError
from nicbench.core.frame_size import CAPTURE
from nicbench.hosts import build_hosts
from nicbench.hosts.base import Host

_TESTER: Final = "tester"
_NEXT_STEP: Final = "give a capture of whole Ethernet frames, pcap or pcapng, on the tester's host"


def with_sizes(bench: BenchFile, known: Mapping[str, CaptureSizes]) -> BenchFile:
    """The configuration that knows the sizes of its captures; a test of one with a single size has that size."""
    traffic = bench.traffic.with_captures(known)
    sizes = None if traffic.streams else traffic.sizes_of_capture(traffic)
    if sizes is None or sizes.smallest < sizes.largest:
        return replace(bench, traffic=traffic)
    return replace(bench, traffic=traffic, tests=tuple(_of_one_size(test, sizes.smallest) for test in bench.tests))


def _of_one_size(test: TestSpec, frame_bytes: int) -> TestSpec:
    if CAPTURE not in getattr(test.options, "frame_bytes", ()):
        return test
    return replace(test, options=test.options.replace(frame_bytes=(frame_bytes,)))


def read_captures(bench: BenchFile, root: Node, problems: list[Problem]) -> BenchFile:
    """The configuration with the sizes of the captures on this machine; what is wrong with them goes to ``problems``.

    Those of a tester on another machine are read when the run begins.
    """
    if not _is_tester_here(bench):
        return bench
    places = dict(_places(bench))
    known: dict[str, CaptureSizes] = {}
    for place, file in places.items():
        try:
            known[file] = known.get(file) or read_sizes(Path(file))
        except OSError as error:
            message = f"the capture {file} cannot be read: {error.strerror}"
            problems.append(Problem(root.position_of(place), message, _NEXT_STEP))
        except WrongCaptureError as error:
            problems.append(Problem(root.position_of(place), f"the capture {file} {error}", _NEXT_STEP))
    problems += _check_largest(bench, root, places, known)
    return with_sizes(bench, known)


async def settle_captures(bench: BenchFile, tester: Host) -> BenchFile:
    """The configuration with the sizes of captures that lie on another machine; WrongBenchFileError as ever."""
    missing = [file for file in bench.traffic.captures() if file not in bench.traffic.known_captures]
    known = dict(bench.traffic.known_captures)
    for file in missing:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "capture"
            await tester.get(file, copy)
            try:
                known[file] = read_sizes(copy)
            except WrongCaptureError as error:
                message = f"the capture {file} {error}"
                raise BenchFileError(message, place=f"{bench.path}, traffic", next_step=_NEXT_STEP) from error
    if not missing:
        return bench
    settled = with_sizes(bench, known)
    root = read(bench.source.encode(), str(bench.path))
    if problems := list(check_frame_sizes(settled, root)):
        raise WrongBenchFileError(str(bench.path), problems)
    return settled


def _is_tester_here(bench: BenchFile) -> bool:
    """Whether the machine that sends is this one, so far as is known before a host is touched."""
    if bench.lab is not None:
        return bench.lab.on is None
    tester = build_hosts(bench.hosts).get(_TESTER)
    return tester is None or tester.shares_files


def _places(bench: BenchFile) -> Iterator[tuple[tuple[Step, ...], str]]:
    """Yields where each capture is named, in the traffic, its streams and the tests."""
    if bench.traffic.pcap is not None:
        yield ("traffic", "pcap"), bench.traffic.pcap
    for index, stream in enumerate(bench.traffic.streams):
        if stream.pcap is not None:
            yield ("traffic", "streams", index, "pcap"), stream.pcap
    for index, test in enumerate(bench.tests):
        captures: Any = getattr(test.options, "captures", ())
        for number, capture in enumerate(captures):
            yield ("tests", index, "captures", number, "file"), capture.file


def _check_largest(
    bench: BenchFile, root: Node, places: Mapping[tuple[Step, ...], str], known: Mapping[str, CaptureSizes]
) -> Iterator[Problem]:
    """Yields each capture with a frame that is larger than the lab's links carry."""
    most = largest_frame_bytes(bench.lab)
    for place, file in places.items():
        sizes = known.get(file)
        if most is not None and sizes is not None and sizes.largest > most:
            message = (
                f"frame {sizes.largest_frame} of {quote(file)} has {sizes.largest} bytes with FCS, and the lab's ports "
                f"take {most}"
            )
            yield Problem(root.position_of(place), message, "raise the lab's `mtu`, or leave such frames out")
