"""What is fuzzed in Python: each target takes any bytes and fails where nicbench breaks a promise about them.

Errors that a user would be told are as they should be; any other exception, and a figure that cannot be, is a find.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from pydantic_core import to_jsonable_python
from tests.bench_file.test_promises import find_empty_tests
from tests.fuzz import folders
from tests.otg.frames import PORTS, SERVED, flow, frame_of, header
from tests.system.inventory.test_hostile_text import EXPECTED, PARSERS, called
from tests.workloads.goldens import job
from tests.workloads.test_tool_output import ASKS, KINDS

from nicbench.bench_file import WrongBenchFileError, parse
from nicbench.cli.plan_table import plan_document
from nicbench.core.errors import UsageError, WrongFileError
from nicbench.core.registry import find
from nicbench.importing.cells import Dialect, decode
from nicbench.importing.columns import ImportOptions
from nicbench.importing.folder import GivenFile, import_files
from nicbench.importing.formats.base import Format
from nicbench.importing.nmon import read_nmon
from nicbench.importing.results import importable
from nicbench.otg import api
from nicbench.otg.configuration import read_configuration
from nicbench.otg.model import OtgError, Problems, check_message, parse_message
from nicbench.stages.hosts import Presence
from nicbench.system.inventory.base import plain_data
from nicbench.workloads.base import Output, WorkloadError
from nicbench.workloads.tool_output import find_implausible

LINK_BITS_PER_S: Final = 1e9
MOST_OF_ONE_LIST: Final = 60_000
"""Characters: every CPU that Linux can have, for a range of a few characters."""
TOOLS: Final = tuple(sorted(KINDS))
Target = Callable[[bytes], None]


def bench_files(content: bytes) -> None:
    """A bench file, which is refused with places inside of it, or keeps its promises."""
    try:
        bench = parse(content, Path("b.yaml"))
    except WrongBenchFileError as error:
        refused = error
    else:
        refused = None
    if refused is not None:
        lines = content.count(b"\n") + content.count(b"\r") + 2
        for problem in refused.problems:
            assert 1 <= problem.position.line <= lines
            assert problem.position.column >= 1
            assert problem.message
        assert len(str(refused)) < 20_000
    elif bench.lab is not None:
        plan_document(bench, Presence())
        assert asyncio.run(find_empty_tests(bench)) == []


def tool_outputs(content: bytes) -> None:
    """What a load tool wrote: the first byte chooses the tool, the second what it was asked for."""
    kind = TOOLS[content[0] % len(TOOLS)] if content else TOOLS[0]
    ask = ASKS[content[1] % len(ASKS)] if len(content) > 1 else ASKS[0]
    text = content[2:].decode(errors="replace")
    workload, asked, output = KINDS[kind], job(kind, ask), Output(text, stderr=text, status=0)
    complaint = workload.complaint(output)
    assert complaint is None or isinstance(complaint, str)
    workload.parse_version(text)
    try:
        figures = workload.parse(asked, output, output)
    except WorkloadError:
        return
    if not find_implausible(asked, figures, LINK_BITS_PER_S):
        for number in _numbers(to_jsonable_python(figures)):
            assert 0 <= number < math.inf, number


def system_texts(content: bytes) -> None:
    """What any other program of a machine wrote: the first byte chooses its parser."""
    line = PARSERS[content[0] % len(PARSERS)] if content else PARSERS[0]
    text = content[1:].decode(errors="replace")
    try:
        found = plain_data(to_jsonable_python(called(line, text)))
    except EXPECTED:
        return
    assert len(json.dumps(found, allow_nan=False)) <= 30 * len(text) + MOST_OF_ONE_LIST


def tables(content: bytes) -> None:
    """A file to import: the first byte chooses format and method, or a recording of a machine."""
    ways = _ways()
    way, text = ways[content[0] % len(ways)] if content else ways[0], content[1:]
    with contextlib.suppress(UsageError, WrongFileError):
        if way is None:
            read_nmon(decode(text, "b.nmon"), "b.nmon", None)
            return
        form, method = way
        found = import_files((GivenFile(Path("b.csv"), text),), form, (method,), ImportOptions(), Dialect())
        json.dumps(to_jsonable_python([result.model_dump() for result in found.results]), allow_nan=False)
        for column in found.columns:
            dataclasses.asdict(column)


@cache
def _ways() -> tuple[tuple[type[Format], Any] | None, ...]:
    formats = find("nicbench.importing.formats", Format)
    return (None, *((formats[form], method) for form in sorted(formats) for _, method in sorted(importable().items())))


def otg_messages(content: bytes) -> None:
    """A message of a client of `nicbench serve`: the first byte chooses its kind. A configuration that is not refused
    has frames, which are made here a second time.
    """
    kind = OTG_KINDS[content[0] % len(OTG_KINDS)] if content else OTG_KINDS[0]
    try:
        message = parse_message(content[1:])
        _require_conforming(kind, message)
        config = _CHANGES[kind](CONFIG, message) if kind in _CHANGES else message
        configuration = read_configuration(config, SERVED, seed=1)
    except OtgError as error:
        refused = error
    else:
        refused = None
    if refused is not None:
        assert refused.errors
        assert all(refused.errors)
        return
    for each in configuration.flows[:MOST_FLOWS]:
        json.dumps(each.program, allow_nan=False)
        size = _smallest(each.program["sizes"])
        for number in (0, 1, 1000):
            assert len(frame_of(each.program, number, size)) == size - 4


def _smallest(sizes: dict[str, Any]) -> int:
    """The least size of a program's frames, in bytes with FCS."""
    if "weighted" in sizes:
        return min(int(each["frame_bytes"]) for each in sizes["weighted"])
    return int(sizes.get("fixed") or sizes.get("random", sizes)["from"])


def _require_conforming(kind: str, message: Mapping[str, Any]) -> None:
    """OtgError, as a client is told, where a message is not as the model has it."""
    problems = Problems()
    check_message(kind, message, "message", problems)
    problems.raise_any()


_CHANGES: Final = {"ConfigUpdate": api.update, "ConfigAppend": api.append, "ConfigDelete": api.delete}
OTG_KINDS: Final = ("Config", *_CHANGES)
CONFIG: Final = {"ports": PORTS, "flows": [flow([header("ethernet"), header("ipv4"), header("udp")])]}
MOST_FLOWS: Final = 3


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from _numbers(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


TARGETS = {
    "bench_files": bench_files,
    "engine_lines": folders.engine_lines,
    "otg_messages": otg_messages,
    "records": folders.records,
    "run_folders": folders.run_folders,
    "system_texts": system_texts,
    "tables": tables,
    "tool_outputs": tool_outputs,
}
