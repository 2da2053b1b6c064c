"""What tools of requests and answers print: fio, k6, wrk and wrk2, h2load, sockperf and netperf.

Each gives the rate of requests and their latency. A test in which requests failed is refused: their latencies are among
the others, and no tool tells them apart. The layouts of fio, wrk, h2load and sockperf are recorded outputs; those of
k6, wrk2 and netperf are what public programs read of them.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from nicbench.core.errors import Position, Problem, UsageError, WrongFileError, quote
from nicbench.core.number_reader import plain_number, read_number
from nicbench.core.round import Job, JobSpec
from nicbench.importing.cells import Cell, Dialect, Sheet, decode, read_sheet
from nicbench.importing.columns import ImportOptions, parse_unit
from nicbench.importing.formats.base import Format, place_of
from nicbench.workloads.base import Output, WorkloadError
from nicbench.workloads.tool_output import Reading, json_object
from nicbench.workloads.tools.sockperf import Sockperf

METHOD: Final = "request-response"
_PERCENTILES: Final = ("50", "90", "99", "99.9", "99.99")
_CLOSE: Final = 0.03
_BUCKET: Final = 1.02
"""By how much fio's percentiles, which are ends of the buckets of a histogram, may exceed the greatest latency."""

Row = Mapping[str, str]
"""The cells of a row by the headings of the method."""


class _Requests(Format):
    """Subclasses say what ``tool`` it is, and give the rows of a text."""

    tool: ClassVar[str]
    is_table = False

    @classmethod
    def cells(cls, content: bytes, path: str, dialect: Dialect) -> Sheet:
        text = decode(content, path, dialect.encoding)
        try:
            rows = list(cls.rows(text))
        except WorkloadError as error:
            hint = f"is it what {cls.tool} printed, whole?"
            raise WrongFileError(path, [Problem(place_of(error, text), error.message, hint)]) from error
        heads = list(dict.fromkeys(head for row in rows for head in row))
        first = Position(1, 1)
        cells = tuple(tuple(Cell(row.get(head, ""), first, is_typed=True) for head in heads) for row in rows)
        return Sheet(tuple(Cell(head, first) for head in heads), cells)

    @classmethod
    def sheet(cls, sheet: Sheet, path: str, method: str, options: ImportOptions) -> Sheet:
        if method != METHOD:
            step = f"write --method {METHOD}"
            raise UsageError(f"{cls.tool} measures requests, not what `{method}` does", place="--from", next_step=step)
        return sheet

    @classmethod
    @abstractmethod
    def rows(cls, text: str) -> Iterator[Row]:
        """Yields the rows; WorkloadError where the text is not what the tool prints, or requests failed."""


class Fio(_Requests):
    """Reads each direction of each job; a request is an operation, its latency that of its completion."""

    kind = "fio"
    tool = "fio"
    about = "JSON of fio (--output-format=json): operations a second and their completion latency"

    @classmethod
    def rows(cls, text: str) -> Iterator[Row]:
        whole = Reading(json_object(text[max(text.find("{"), 0) :], cls.tool), cls.tool)
        version = whole.text("fio version") or "fio"
        for job in whole.parts("jobs"):
            name = job.text("jobname") or "job"
            if job.maybe_number("error"):
                raise WorkloadError(f"the job {quote(name)} of fio failed with error {job.number('error'):g}")
            for way in ("read", "write", "trim"):
                said = job.maybe(way)
                if said is None or not said.maybe_number("total_ios"):
                    continue
                latency = said.maybe("clat_ns")
                if latency is None:
                    raise WorkloadError("the output of fio has no clat_ns, as that of versions before 3 has not")
                most = latency.maybe_number("max")
                shares = latency.maybe("percentile")
                percentiles = {
                    name: None if shares is None else shares.maybe_number(f"{plain_number(name):.6f}")
                    for name in _PERCENTILES
                }
                yield {
                    "tool": version.replace("fio-", "fio "),
                    "mode": f"{name}, {way}",
                    "transactions": _text(said.number("iops")),
                    "latency of": "completion",
                    "requests timed": _text(said.maybe_number("total_ios")),
                    "minimum latency [ns]": _text(latency.maybe_number("min")),
                    "average latency [ns]": _text(latency.maybe_number("mean")),
                    "maximum latency [ns]": _text(most),
                    **{f"p{name} [ns]": _text(_at_most(value, most)) for name, value in percentiles.items()},
                }


def _at_most(value: float | None, most: float | None) -> float | None:
    """Returns a percentile, or the greatest latency where it exceeds it by no more than its bucket."""
    return most if value is not None and most is not None and most < value <= most * _BUCKET else value


class K6(_Requests):
    """Reads the summary of a test, as --summary-export or handleSummary write it; times are in milliseconds."""

    kind = "k6"
    tool = "k6"
    about = "JSON summary of k6 (--summary-export, or data of handleSummary)"

    @classmethod
    def rows(cls, text: str) -> Iterator[Row]:
        metrics = Reading(json_object(text, cls.tool), cls.tool).part("metrics")

        def values(name: str) -> Reading:
            metric = metrics.part(name)
            return metric.maybe("values") or metric

        requests, duration = values("http_reqs"), values("http_req_duration")
        failed = values("http_req_failed") if metrics.has("http_req_failed") else None
        share = _first(failed, ("rate", "value")) if failed is not None else None
        if share:
            raise WorkloadError(_failed(f"{100 * share:g} % of the requests"))
        named = {"50": ("med", "p(50)"), **{name: (f"p({name})",) for name in _PERCENTILES[1:]}}
        found = {name: _first(duration, keys) for name, keys in named.items()}
        yield {
            "tool": "k6",
            "transactions": _text(requests.number("rate")),
            "latency of": "request",
            "requests timed": _text(requests.maybe_number("count")),
            "minimum latency [ms]": _text(duration.maybe_number("min")),
            "average latency [ms]": _text(duration.maybe_number("avg")),
            "maximum latency [ms]": _text(duration.maybe_number("max")),
            **{f"p{name} [ms]": _text(value) for name, value in found.items()},
        }


def _first(said: Reading, names: Sequence[str]) -> float | None:
    """Returns the first of these numbers that is there."""
    return next((said.maybe_number(name) for name in names if said.has(name)), None)


_WRK_STATS: Final = re.compile(r"^ +Latency +(\S+) +\S+ +(\S+) ", re.MULTILINE)
_WRK_SHARE: Final = re.compile(r"^ *(\d{1,3}(?:\.\d{1,5})?)% +(\S+)$", re.MULTILINE)
_WRK_COUNT: Final = re.compile(r"^ +(\d{1,15}) requests in (\S+),", re.MULTILINE)
_WRK_RATE: Final = re.compile(r"^Requests/sec: +(\S+)", re.MULTILINE)
_WRK_FAILED: Final = re.compile(
    r"^ +(?:Socket errors: (?!connect 0, read 0, write 0, timeout 0)|Non-2xx).*", re.MULTILINE
)
_UNCORRECTED: Final = "Uncorrected Latency"
_RECORDED: Final = "HdrHistogram"


class Wrk(_Requests):
    """Reads wrk and wrk2, whose latency is from the time at which a request was due."""

    kind = "wrk"
    tool = "wrk"
    about = "text of wrk or wrk2 (--latency)"

    @classmethod
    def rows(cls, text: str) -> Iterator[Row]:
        stats, count, rate = (found.search(text) for found in (_WRK_STATS, _WRK_COUNT, _WRK_RATE))
        if stats is None or count is None or rate is None:
            raise WorkloadError("the output of wrk has no latency, number or rate of requests")
        failed = _WRK_FAILED.search(text)
        if failed is not None:
            raise WorkloadError(_failed(" ".join(failed[0].split())))
        requests, took_s = _number(count[1]), _nanoseconds(count[2]) * 1e-9
        if took_s <= 0 or not math.isclose(requests / took_s, _number(rate[1]), rel_tol=_CLOSE):
            raise WorkloadError(f"wrk says {rate[1]} requests/s, where {count[1]} in {count[2]} make another rate")
        is_second = _RECORDED in text
        recorded = text.partition(_UNCORRECTED)[0]
        shares = {f"{plain_number(share):g}": value for share, value in _WRK_SHARE.findall(recorded)}
        percentiles = {f"p{name} [ns]": _text(_nanoseconds(shares[name])) for name in _PERCENTILES if name in shares}
        greatest = str(shares["100"] if is_second and "100" in shares else stats[2])
        yield {
            "tool": "wrk2" if is_second else "wrk",
            "transactions": rate[1],
            "latency of": "request, from when it was due" if is_second else "request",
            "requests timed": count[1],
            "average latency [ns]": _text(_nanoseconds(stats[1])),
            "maximum latency [ns]": _text(_nanoseconds(greatest)),
            **percentiles,
        }


_H2_RATE: Final = re.compile(r"^finished in \S+, (\S+) req/s", re.MULTILINE)
_H2_COUNTS: Final = re.compile(
    r"^requests: (\d{1,15}) total, \d+ started, (\d{1,15}) done, (\d{1,15}) succeeded", re.MULTILINE
)
_H2_HEADS: Final = re.compile(r"^ +(min +max +.*)$", re.MULTILINE)
_H2_TIMES: Final = re.compile(r"^(?:time for request|request +):(.*)$", re.MULTILINE)
_H2_NAMES: Final = {
    "min": "minimum latency [ns]",
    "max": "maximum latency [ns]",
    "mean": "average latency [ns]",
    "median": "p50 [ns]",
    "p99": "p99 [ns]",
}


class H2load(_Requests):
    """Reads the table of times, whose columns depend on the version."""

    kind = "h2load"
    tool = "h2load"
    about = "text of nghttp2's h2load"

    @classmethod
    def rows(cls, text: str) -> Iterator[Row]:
        rate, counts, heads, times = (found.search(text) for found in (_H2_RATE, _H2_COUNTS, _H2_HEADS, _H2_TIMES))
        if rate is None or counts is None or heads is None or times is None:
            raise WorkloadError("the output of h2load has no rate, counts or times of requests")
        if not counts[1] == counts[2] == counts[3]:
            raise WorkloadError(_failed(f"of {counts[1]} requests {counts[3]} succeeded"))
        named = dict(zip(heads[1].split(), times[1].split(), strict=False))
        found = {head: _text(_nanoseconds(named[name])) for name, head in _H2_NAMES.items() if name in named}
        yield {
            "tool": "h2load",
            "transactions": rate[1],
            "latency of": "request",
            "requests timed": counts[2],
            **found,
        }


class SockperfText(_Requests):
    """Reads what sockperf prints, by the parser that reads it when nicbench runs it."""

    kind = "sockperf"
    tool = "sockperf"
    about = "text of sockperf ping-pong or under-load, with its log of requests or without"

    @classmethod
    def rows(cls, text: str) -> Iterator[Row]:
        ask = JobSpec(operation=METHOD, transport="udp" if "# UDP" in text else "tcp", duration_s=1.0)
        job = Job(workload="sockperf", client="client", server="server", ask=ask, port=1)
        figures = Sockperf().parse(job, Output(text), None)
        latency = figures.latency
        if figures.notes:
            raise WorkloadError(_failed(figures.notes[0]))
        if latency is None or figures.transactions_per_s is None:
            raise WorkloadError("the output of sockperf has no latency of requests")
        transport = {"transport": ask.transport} if f"# {ask.transport.upper()}" in text else {}
        yield {
            "tool": "sockperf",
            **transport,
            "transactions": _text(figures.transactions_per_s),
            "latency of": latency.basis,
            "requests timed": _text(latency.count),
            "minimum latency [ns]": _text(latency.minimum_ns),
            "average latency [ns]": _text(latency.mean_ns),
            "maximum latency [ns]": _text(latency.maximum_ns),
            **{f"p{name} [ns]": _text(latency.percentiles_ns.get(name)) for name in _PERCENTILES},
        }


_NETPERF: Final = {
    "Minimum Latency Microseconds": "minimum latency [us]",
    "Mean Latency Microseconds": "average latency [us]",
    "Maximum Latency Microseconds": "maximum latency [us]",
    "50th Percentile Latency Microseconds": "p50 [us]",
    "90th Percentile Latency Microseconds": "p90 [us]",
    "99th Percentile Latency Microseconds": "p99 [us]",
}
_UNITS: Final = {"10^3bits/s": "kb/s", "10^6bits/s": "Mb/s", "10^9bits/s": "Gb/s"}
_RATE: Final = "Transaction Rate Tran/s"
_THROUGHPUT, _THROUGHPUT_UNITS, _PROTOCOL = "Throughput", "Throughput Units", "Protocol"
_TRANSACTIONS: Final = "Trans/s"


class NetperfCsv(Format):
    """Reads the CSV of one netperf, with the line above its headings or without (-P 0 leaves both out)."""

    kind = "netperf"
    about = "CSV of netperf (-o): requests and their latency, or a stream"

    @classmethod
    def cells(cls, content: bytes, path: str, dialect: Dialect) -> Sheet:
        text = decode(content, path, dialect.encoding)
        heading = next((at for at, line in enumerate(text.splitlines(), 1) if _is_heading(line)), None)
        if heading is None:
            what = "this is no CSV of netperf: no line names its columns"
            step = "run it without -P 0, and with -o Throughput,Throughput_Units,..."
            raise WrongFileError(path, [Problem(Position(1, 1), what, step)])
        sheet = read_sheet(text, path, replace(dialect, delimiter=",", heading_lines=(heading, heading)))
        rows = tuple(tuple(_known(cell) for cell in row) for row in sheet.rows)
        return replace(sheet, rows=rows)

    @classmethod
    def sheet(cls, sheet: Sheet, path: str, method: str, options: ImportOptions) -> Sheet:
        units = {unit: cell for cell, unit in _column(sheet, _THROUGHPUT_UNITS)}
        wanted = _wanted_of_netperf(method, tuple(units))
        if len(units) > 1 or wanted is None or not any(head.text in wanted for head in sheet.heads):
            first = next(iter(units.values()), sheet.heads[0])
            what = f"nothing of `{method}` is in what netperf printed in {' and '.join(map(quote, units)) or 'no unit'}"
            step = f"streams are --method stream, requests --method {METHOD}; {quote(_THROUGHPUT_UNITS)} must be there"
            raise WrongFileError(path, [Problem(first.position, what, step)])
        asked = {*options.configurations, *options.columns, *options.where}
        kept = [index for index, head in enumerate(sheet.heads) if head.text in wanted or head.text in asked]
        heads = tuple(replace(head, text=wanted.get(head.text, head.text)) for head in (sheet.heads[at] for at in kept))
        ignored = tuple(head.text for index, head in enumerate(sheet.heads) if index not in kept)
        rows = tuple(tuple(row[index] for index in kept) for row in sheet.rows)
        return replace(sheet, heads=heads, rows=rows, ignored=(*sheet.ignored, *ignored))


def _wanted_of_netperf(method: str, units: Sequence[str]) -> Mapping[str, str] | None:
    """Returns the columns of a method by netperf's headings; None where it has none of it."""
    unit = units[0] if units else None
    if method == "stream" and unit in _UNITS:
        return {_THROUGHPUT: f"throughput [{_UNITS[unit]}]", _PROTOCOL: "mode"}
    if method == METHOD and unit in (_TRANSACTIONS, None):
        rate = {_THROUGHPUT: "transactions"} if unit == _TRANSACTIONS else {_RATE: "transactions"}
        return {**_NETPERF, **rate, _PROTOCOL: "transport"}
    return None


def _is_heading(line: str) -> bool:
    names = {name.strip() for name in line.split(",")}
    return bool(names & {_THROUGHPUT, _RATE, *_NETPERF})


def _column(sheet: Sheet, name: str) -> Iterator[tuple[Cell, str]]:
    index = sheet.index_of(name)
    yield from ((row[index], row[index].text) for row in sheet.rows if index is not None)


def _known(cell: Cell) -> Cell:
    """Returns a cell of netperf, which prints -1 for what it does not know, and a decimal point wherever it runs."""
    is_unknown = re.fullmatch(r"-1(?:\.0*)?", cell.text) is not None
    return replace(cell, text="" if is_unknown else cell.text, is_typed=True)


def _failed(what: str) -> str:
    return f"{what}: requests failed, and their latencies are among the others"


def _number(text: str) -> float:
    try:
        return plain_number(text)
    except ValueError as error:
        raise WorkloadError(str(error)) from error


_DURATIONS: Final = {"m": 60e9, "min": 60e9, "h": 3600e9}


def _nanoseconds(text: str) -> float:
    """Parses a time such as "56.00us", "1.02m" or "3.4s"."""
    try:
        number = read_number(text)
    except ValueError as error:
        raise WorkloadError(f"{text!r} is no time") from error
    unit = parse_unit(number.rest)
    factor = float(unit.factor) if unit is not None and unit.kind == "time" else _DURATIONS.get(number.rest)
    if factor is None:
        raise WorkloadError(f"{text!r} is no time")
    return float(number.value) * factor


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.15g}"
