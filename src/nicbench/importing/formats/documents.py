"""JSON documents of testers: iperf3 and Cisco TRex."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from nicbench.core.errors import Position, Problem, UsageError, WrongFileError
from nicbench.core.round import Direction, Flow, Job, JobSpec
from nicbench.importing.cells import MOST_ROWS, Cell, Dialect, Sheet, decode
from nicbench.importing.columns import ImportOptions
from nicbench.importing.formats.base import Format, place_of
from nicbench.workloads.base import Output, WorkloadError
from nicbench.workloads.tool_output import Reading, find_implausible, json_object
from nicbench.workloads.tools.iperf3 import Iperf3, is_both_ways

_IPERF3_HEADS: Final = (
    "tool",
    "mode",
    "direction",
    "port",
    "throughput [b/s]",
    "retransmissions",
    "datagrams lost [%]",
)
_WORDS: Final = {"forward": "to the server", "reverse": "from the server"}
_LEFT_OUT: Final = ("intervals", "cpu_utilization_percent", "jitter_ms")
_LONGEST_NAME: Final = 200


class Iperf3Json(Format):
    """Reads every test of each file: one document, several one after the other, or the lines of --json-stream."""

    kind = "iperf3"
    about = "JSON of an iperf3 client (-J or --json-stream); several tests have a column `test`"
    is_table = False

    @classmethod
    def cells(cls, content: bytes, path: str, dialect: Dialect) -> Sheet:
        text = decode(content, path, dialect.encoding)
        rows = []
        for number, (document, lines_before) in enumerate(_tests(text), 1):
            found = _rows_of_test(document, path, lines_before)
            rows += [(*row, Cell(str(number), row[0].position)) for row in found]
        first = Position(1, 1)
        return Sheet(tuple(Cell(head, first) for head in (*_IPERF3_HEADS, TEST)), tuple(rows), _LEFT_OUT)

    @classmethod
    def sheet(cls, sheet: Sheet, path: str, method: str, options: ImportOptions) -> Sheet:
        if method != "stream":
            raise UsageError(
                f"iperf3 measures streams, not what `{method}` does", place="--from", next_step="write --method stream"
            )
        return without_unasked(sheet, TEST, options)


TEST: Final = "test"
"""The column with the number of the test in its file."""


def without_unasked(sheet: Sheet, name: str, options: ImportOptions) -> Sheet:
    """Returns the sheet without a column that no option names."""
    index = sheet.index_of(name)
    if index is None or name in {*options.configurations, *options.columns, *options.where}:
        return sheet
    heads = (*sheet.heads[:index], *sheet.heads[index + 1 :])
    return replace(sheet, heads=heads, rows=tuple((*row[:index], *row[index + 1 :]) for row in sheet.rows))


def _tests(text: str) -> list[tuple[str, int]]:
    """Returns the document of each test, with the lines before it; the whole text if it is not JSON.

    A document that is there twice is one (esnet/iperf 1688).
    """
    decoder, at, found = json.JSONDecoder(), 0, list[tuple[Any, str, int]]()
    try:
        while at < len(text.rstrip()):
            begin = at + len(text[at:]) - len(text[at:].lstrip())
            content, at = decoder.raw_decode(text, begin)
            found.append((content, text[begin:at], text.count("\n", 0, begin)))
    except (ValueError, RecursionError):
        return [(text, 0)]
    if found and all(isinstance(content, dict) and "event" in content for content, *_ in found):
        return _streamed([content for content, *_ in found])
    if len(found) == 1 and isinstance(found[0][0], list) and found[0][0]:
        return [(json.dumps(one), 0) for one in found[0][0]]
    return list({document: (document, before) for _, document, before in found}.values()) or [(text, 0)]


def _streamed(events: Sequence[Mapping[str, Any]]) -> list[tuple[str, int]]:
    """Puts the events of --json-stream together as -J has them: a test begins with each start."""
    tests: list[dict[str, Any]] = []
    for event in events:
        if event["event"] == "start" or not tests:
            tests.append({})
        if event["event"] != "interval":
            tests[-1][str(event["event"])] = event.get("data")
    return [(json.dumps(one), 0) for one in tests]


def _rows_of_test(text: str, path: str, lines_before: int) -> list[tuple[Cell, ...]]:
    def problem(place: Position, what: str, hint: str) -> Problem:
        return Problem(Position(place.line + lines_before, place.column), what, hint)

    try:
        whole = Reading(json_object(text, "iperf3"), "iperf3")
        complaint = Iperf3().complaint(Output(text))
        if complaint is not None:
            raise WorkloadError(f"iperf3 failed: {complaint}")
        job = _job(whole)
        figures = Iperf3().parse(job, Output(text), None)
        wrong = find_implausible(job, figures)
    except WorkloadError as error:
        hint = "is it the output of `iperf3 -c .. -J`, whole?"
        raise WrongFileError(path, [problem(place_of(error, text), error.message, hint)]) from error
    if wrong:
        hint = "correct the file, or leave it out"
        raise WrongFileError(path, [problem(_place(text, "end"), f"cannot be: {each}", hint) for each in wrong])
    rows = []
    for number, flow in enumerate(figures.flows):
        place = _place(text, f"sum_received{'_bidir_reverse' if number else ''}")
        cell_place = Position(place.line + lines_before, place.column)
        row = _row(whole.part("start"), job, flow)
        rows.append(tuple(Cell(text_of_cell, cell_place, is_typed=True) for text_of_cell in row))
    return rows


def _job(whole: Reading) -> Job:
    """Reconstructs the job of iperf3 from its own report."""
    start = whole.part("start")
    if start.has("accepted_connection"):
        raise WorkloadError("this was written by iperf3's server, which does not know what the client received")
    test = start.part("test_start")
    protocol = (test.text("protocol") or "").lower()
    if protocol not in ("tcp", "udp"):
        raise WorkloadError(f"iperf3 sent {protocol or 'an unknown protocol'}, and only TCP and UDP are imported")
    end = whole.part("end")
    direction: Direction = "both" if is_both_ways(end) else "reverse" if test.maybe_number("reverse") else "forward"
    ask = JobSpec(
        transport="udp" if protocol == "udp" else "tcp",
        direction=direction,
        duration_s=test.maybe_number("duration") or None,
        total_bytes=test.maybe_count("bytes") or None,
        write_bytes=test.maybe_count("blksize") or None,
        streams=test.maybe_count("num_streams") or 1,
    )
    options = {"omit_s": test.maybe_count("omit") or 0}
    return Job(workload="iperf3", client="client", server="server", ask=ask, port=5201, options=options)


def _row(start: Reading, job: Job, flow: Flow) -> tuple[str, ...]:
    """Returns the cells in the order of ``_IPERF3_HEADS``."""
    ask = job.ask
    way = _WORDS[flow.direction]
    words = f"{ask.transport.upper()} {'both ways at once, ' if ask.direction == 'both' else ''}{way}"
    writes = f", writes of {ask.write_bytes} bytes" if ask.write_bytes else ""
    many = f", {ask.streams} connections" if ask.streams > 1 else ""
    lost = _lost_percent(flow)
    return (
        _name(start.text("version") or "iperf3").replace("iperf ", "iperf3 "),
        words + writes + many,
        flow.direction,
        _name(_server(start) or "-"),
        _number(flow.bits_per_s),
        _number(flow.retransmissions),
        _number(lost),
    )


def _server(start: Reading) -> str | None:
    connecting = start.maybe("connecting_to")
    connected = start.parts("connected")
    return (connecting and connecting.text("host")) or (connected[0].text("remote_host") if connected else None)


def _lost_percent(flow: Flow) -> float | None:
    if not flow.datagrams or flow.lost_datagrams is None:
        return None
    return 100.0 * flow.lost_datagrams / flow.datagrams


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.15g}"


def _name(text: str) -> str:
    """Returns a text of the file on one line and of limited length, for headings."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text[:_LONGEST_NAME]).split()) or "-"


def _place(text: str, name: str) -> Position:
    """Returns the position of the last occurrence of a key; the beginning without one."""
    at = max(text.rfind(f'"{name}"'), 0)
    return Position(text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1)


GROUP: Final = "packet group"
_COUNTS: Final = ("offered frames", "returned frames", "loss [%]")
_LATENCIES: Final = ("minimum latency [us]", "average latency [us]", "maximum latency [us]")
_TREX_HEADS: Final = (GROUP, *_COUNTS, *_LATENCIES)
_OF_METHOD: Final = {"frame-loss": _COUNTS, "latency": _LATENCIES}
_ALL_PORTS: Final = "all ports"


class TrexStatistics(Format):
    """Reads one trial from each file."""

    kind = "trex"
    about = "statistics of TRex's stateless client as JSON, one trial for each file"
    is_table = False

    @classmethod
    def cells(cls, content: bytes, path: str, dialect: Dialect) -> Sheet:
        text = decode(content, path, dialect.encoding)
        try:
            rows = _rows(Reading(json_object(text, "TRex"), "TRex"))
        except WorkloadError as error:
            hint = "is it what STLClient.get_stats() returned, whole?"
            raise WrongFileError(path, [Problem(place_of(error, text), error.message, hint)]) from error
        if len(rows) > MOST_ROWS:
            raise WrongFileError(path, [Problem(Position(1, 1), f"has more than {MOST_ROWS} packet groups", None)])
        first = Position(1, 1)
        heads = tuple(Cell(head, first) for head in _TREX_HEADS)
        return Sheet(
            heads, tuple(tuple(Cell(text_of_cell, first, is_typed=True) for text_of_cell in row) for row in rows)
        )

    @classmethod
    def sheet(cls, sheet: Sheet, path: str, method: str, options: ImportOptions) -> Sheet:
        if method not in _OF_METHOD:
            known = ", ".join(f"`{name}`" for name in _OF_METHOD)
            step = f"known are {known}; or write a table and use --from plain"
            raise UsageError(f"nothing of `{method}` is in TRex's statistics", place="--from", next_step=step)
        wanted = _OF_METHOD[method]
        asked = {*options.configurations, *options.columns, *options.where}
        kept = [
            number
            for number, head in enumerate(sheet.heads)
            if head.text in wanted or head.text not in _TREX_HEADS or (head.text == GROUP and GROUP in asked)
        ]
        figures = [number for number, head in enumerate(sheet.heads) if head.text in wanted]
        rows = [row for row in sheet.rows if any(row[number].text for number in figures)]
        if not rows:
            missing = "no latency stream" if method == "latency" else "no sum of all ports"
            raise WrongFileError(path, [Problem(Position(1, 1), f"there is {missing} in it", None)])
        chosen = tuple(tuple(row[number] for number in kept) for row in rows)
        return replace(sheet, heads=tuple(sheet.heads[number] for number in kept), rows=chosen)


def _rows(stats: Reading) -> list[tuple[str, ...]]:
    """Returns rows in the order of ``_TREX_HEADS``: all ports together, then each packet group that has latencies."""
    total = stats.part("total")
    sent, received = total.number("opackets"), total.number("ipackets")
    lost_percent = 100.0 * (sent - received) / sent if sent > 0 else None
    blank = ("", "", "")
    rows = [(_ALL_PORTS, *map(_text, (sent, received, lost_percent)), *blank)]
    groups = stats.maybe("latency")
    for group in groups.names() if groups else ():
        if groups is None or not group.isdecimal():  # "global" has the errors of no group
            continue
        latency = groups.part(group).part("latency")
        latencies = (latency.maybe_number(name) for name in ("total_min", "average", "total_max"))
        rows.append((group[:20], *blank, *(_text(value) for value in latencies)))
    return rows


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.15g}"
