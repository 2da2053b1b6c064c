"""The output of tools: parsed, trusting nothing, and its figures checked against what is possible."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, pstdev
from typing import Any, Final, NoReturn

from nicbench.core.lists import without_none
from nicbench.core.number_reader import plain_number
from nicbench.core.round import Basis, Figures, Flow, Job, JobSpec, RequestLatency
from nicbench.stats.latency import histogram_of, percentiles_ns
from nicbench.store.files import LARGEST_WHOLE_NUMBER
from nicbench.workloads.base import WorkloadError, has_control_characters, last_words

# Parses what tools print, trusting nothing: JSON, numbers, and latencies of single requests.

NANOSECONDS_PER_MICROSECOND = 1000
_QUOTED_CHARACTERS = 80
_MOST_DIGITS = 30
_NOT_FINITE = ("inf", "infinity", "nan")


def json_object(text: str, tool: str) -> Mapping[str, Any]:
    """Parses the one JSON object that a tool printed. WorkloadError for other text, NaN or infinity.

    iperf3 3.16 and 3.17 may print it twice (esnet/iperf 1688).
    """
    text = text.strip()
    try:
        content, end = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode(text)
        if text[end:].strip() not in ("", text[:end]):
            raise ValueError("something follows it")
    except (ValueError, RecursionError) as error:
        raise WorkloadError(f"the output of {tool} is no JSON: {_first_line(error)}; {_quote_end(text)}") from error
    if not isinstance(content, dict):
        beginning = last_words(text[:_QUOTED_CHARACTERS])
        raise WorkloadError(f"the output of {tool} is no JSON object, but begins: {beginning}")
    return content


class Reading:
    """A JSON object of a tool's output, read field by field. Errors name the field's place in the output."""

    def __init__(self, content: Any, tool: str, place: str = "") -> None:
        if not isinstance(content, Mapping):
            raise WorkloadError(f"the output of {tool} has no {place or 'content'}")
        self._content = content
        self._tool = tool
        self._place = place

    def part(self, name: str) -> Reading:
        """Returns a part that must be there; WorkloadError where it is missing."""
        return Reading(self._content.get(name), self._tool, self._within(name))

    def maybe(self, name: str) -> Reading | None:
        """Returns a part, None where it is missing."""
        return None if self._content.get(name) is None else self.part(name)

    def parts(self, name: str) -> tuple[Reading, ...]:
        """Returns a list of parts, empty where it is missing."""
        content = self._content.get(name, [])
        if not isinstance(content, list):
            raise WorkloadError(f"the output of {self._tool}: {self._within(name)} is no list")
        return tuple(Reading(one, self._tool, self._within(name)) for one in content)

    def number(self, name: str) -> float:
        """Returns a number that must be there; WorkloadError where it is missing."""
        value = self.maybe_number(name)
        if value is None:
            raise WorkloadError(f"the output of {self._tool} has no {self._within(name)}")
        return value

    def maybe_number(self, name: str) -> float | None:
        """Returns a number, None where it is missing."""
        value = self._content.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise WorkloadError(f"the output of {self._tool}: {self._within(name)} is no number")
        return finite(value, f"{self._tool}: {self._within(name)}")

    def maybe_count(self, name: str) -> int | None:
        """Returns a whole number, None where it is missing."""
        value = self.maybe_number(name)
        return None if value is None else int(value)

    def flag(self, name: str) -> bool | None:
        """Returns true or false, None where the field is missing or neither."""
        value = self._content.get(name)
        return value if isinstance(value, bool) else None

    def text(self, name: str) -> str | None:
        """Returns a text, None where it is missing or empty."""
        value = self._content.get(name)
        return value if isinstance(value, str) and value else None

    def names(self) -> tuple[str, ...]:
        """Returns the names of the fields, in the order of the output."""
        return tuple(str(name) for name in self._content)

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self._content.get(name) is not None

    def _within(self, name: str) -> str:
        return f"{self._place}.{name}" if self._place else name


def finite(value: float, what: str) -> float:
    """Converts to a finite float. WorkloadError where the number is NaN, infinite, or too large."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise WorkloadError(f"the output of {what} is no finite number")
    return number


def number_of(text: str, what: str) -> float:
    """Parses a number that a tool printed. WorkloadError for other text, which includes ``inf`` and ``nan``."""
    is_named = text.strip().lstrip("+-").lower() in _NOT_FINITE
    try:
        return finite(math.inf if is_named else plain_number(text.strip()), what)
    except ValueError:
        raise WorkloadError(f"the output of {what} is no number: {last_words(text[:_QUOTED_CHARACTERS])!r}") from None


def count_of(text: str, what: str) -> int:
    """Parses the digits of a count. WorkloadError where there are more of them than any count has."""
    if len(text) > _MOST_DIGITS:
        raise WorkloadError(f"the output of {what} has a count of {len(text)} digits")
    return int(text)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}, which is no number")


def _first_line(error: Exception) -> str:
    return last_words((str(error).splitlines() or [type(error).__name__])[0])


def _quote_end(text: str) -> str:
    return f"it ends: {last_words(text[-200:])}" if text.strip() else "it is empty"


def latency_of(samples_us: Sequence[float], basis: Basis, tool: str) -> RequestLatency:
    """Computes the distribution of single latencies in microseconds. WorkloadError without any, or with a bad one."""
    if not samples_us:
        raise WorkloadError(f"{tool} kept no latency of any request")
    least, most = min(samples_us), max(samples_us)
    if not math.isfinite(sum(samples_us) * NANOSECONDS_PER_MICROSECOND) or least <= 0:
        raise WorkloadError(f"{tool} kept a latency of {least:g} µs")
    counted = Counter(round(one * NANOSECONDS_PER_MICROSECOND) for one in samples_us)
    histogram = histogram_of(sorted(counted.items()))
    maximum_ns = most * NANOSECONDS_PER_MICROSECOND
    return RequestLatency(
        basis=basis,
        count=len(samples_us),
        minimum_ns=least * NANOSECONDS_PER_MICROSECOND,
        mean_ns=fmean(samples_us) * NANOSECONDS_PER_MICROSECOND,
        maximum_ns=maximum_ns,
        stdev_ns=pstdev(samples_us) * NANOSECONDS_PER_MICROSECOND,
        percentiles_ns=dict(percentiles_ns(histogram, maximum_ns=round(maximum_ns))),
        histogram=histogram,
    )


# Checks the figures of tools: a rate above what the link carries, a contradiction, or no number is implausible.  The
# figures of a tool that miscounts, or was disturbed so that they make no sense, are refused with the reason.

CEILING_BITS_PER_S: Final = 10e12
"""Limit where the link's rate is unknown: more than any machine moves."""
MEMORY_CEILING_BYTES_PER_S: Final = 100e12
_MARGIN: Final = 0.01
# A receiver's clock may start this much after the first bytes have arrived, which matters in a short test.
_START_S: Final = 0.01
# What a sender's socket may still hold when it ends (tcp_wmem), for tools that count only what was sent.
_SEND_BUFFER_BYTES: Final = 4 * 1024 * 1024
_IN_FLIGHT_BYTES: Final = 16 * 1024 * 1024
_SHORTEST, _LONGEST = 0.95, 1.05
_SHORTER_S, _LONGER_S = 0.2, 2.0
_LONGEST_LATENCY_NS: Final = 1e12
_ROUNDED: Final = 0.999
"""Share of the requested bytes that suffices, because some tools print rounded megabytes."""


def find_implausible(job: Job, figures: Figures, link_bits_per_s: float | None = None) -> tuple[str, ...]:
    """Lists what is implausible in the figures, one sentence each; empty where they can be trusted.

    ``link_bits_per_s`` is the rate in one direction of the slower link of the two ends.
    """
    ask = job.ask
    texts = list(_check_values(figures.model_dump(mode="python")))
    if texts:  # without valid numbers the other checks cannot be computed
        return tuple(texts)
    if ask.operation == "stream":
        texts += _check_streams(job, figures, link_bits_per_s)
    elif ask.operation == "request-response":
        texts += _check_requests(figures)
    elif ask.operation == "frames":
        texts += _check_frames(ask, figures)
    elif ask.operation == "connections":
        texts += _check_connections(figures)
    elif figures.memory_bytes_per_s is None:
        texts += [] if job.role == "memory" else ["nothing is said of the memory's throughput"]  # a load may be short
    elif not 0 < figures.memory_bytes_per_s <= MEMORY_CEILING_BYTES_PER_S:
        texts.append(f"a memory throughput of {figures.memory_bytes_per_s:g} bytes/s")
    for name, share in (("client", figures.client_cpu_share), ("server", figures.server_cpu_share)):
        if share is not None and share > 4096:
            texts.append(f"{share:g} CPUs busy with the {name}")
    return tuple(texts)


def _check_values(value: Any, name: str = "") -> Iterator[str]:
    """Finds numbers that are not finite or negative, and texts with control characters."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _check_values(part, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _check_values(part, name)
    elif isinstance(value, bool):
        return
    elif isinstance(value, int) and abs(value) > LARGEST_WHOLE_NUMBER:
        yield f"{name} has more digits than any count"
    elif isinstance(value, int | float):
        if not math.isfinite(value) or value < 0:
            yield f"{name} is {value}"
    elif isinstance(value, str) and has_control_characters(value):
        yield f"{name} holds control characters"


def _check_frames(ask: JobSpec, figures: Figures) -> Iterator[str]:
    said = figures.frames
    if said is None:
        yield "nothing is said of frames"
        return
    if said.frames and said.measured_ns:
        rate = said.frames * 1e9 / said.measured_ns
        if not math.isclose(rate, said.frames_per_s, rel_tol=_MARGIN):
            yield f"{said.frames} frames in {said.measured_ns * 1e-9:g} s and {said.frames_per_s:g} frames/s"
    if said.dropped_frames is not None and said.due_frames is not None and said.dropped_frames > said.due_frames:
        yield f"{said.dropped_frames} dropped frames of {said.due_frames} that were due"
    if said.bytes_per_s > MEMORY_CEILING_BYTES_PER_S:
        yield f"{said.bytes_per_s:g} bytes/s"
    duration_s, measured_s = ask.duration_s, said.measured_ns * 1e-9
    if duration_s is not None and measured_s > duration_s * _LONGEST + _LONGER_S:
        yield f"{measured_s:g} s were measured, and {duration_s:g} s asked for"


def _check_connections(figures: Figures) -> Iterator[str]:
    said = figures.connections
    if said is None:
        yield "nothing is said of connections"
        return
    for name, counts in (("ramp", said.ramp), ("sustain phase", said.sustain)):
        if counts.completed + counts.failures != counts.due:
            yield f"{name}: {counts.completed} completed and {counts.failures} failed of {counts.due} that were due"


def _check_streams(job: Job, figures: Figures, link_bits_per_s: float | None) -> Iterator[str]:
    ask = job.ask
    directions = {"forward", "reverse"} if ask.direction == "both" else {ask.direction}
    missing = directions - {flow.direction for flow in figures.flows}
    if missing:
        yield f"nothing is said of the direction {' and '.join(sorted(missing))}"
    # Where the beginning is omitted (iperf3's -O), bytes sent in it may arrive after it.
    in_flight = ask.streams * max(ask.window_bytes or 0, _IN_FLIGHT_BYTES) if job.options.get("omit_s") else 0
    for flow in figures.flows:
        texts = (*_check_flow(ask, flow, link_bits_per_s), *_check_surplus(ask, flow, in_flight))
        yield from (f"{flow.direction}: {text}" for text in texts)
    yield from (
        f"an interval with {rate:g} bit/s, more than anything carries"
        for _, rate in figures.intervals
        if rate > CEILING_BITS_PER_S
    )


def _check_flow(ask: JobSpec, flow: Flow, link_bits_per_s: float | None) -> Iterator[str]:
    if flow.received_bits_per_s == 0 and flow.sent_bits_per_s:
        return  # the path carried nothing, which is a result
    if not flow.bits_per_s:
        yield "nothing arrived"
        return
    yield from _check_speed(ask, flow, link_bits_per_s)
    yield from _check_duration(ask, flow)
    yield from _check_rates(flow)
    if flow.datagrams is not None and flow.lost_datagrams is not None and flow.lost_datagrams > flow.datagrams:
        yield f"{flow.lost_datagrams} datagrams lost of {flow.datagrams}"
    asked = ask.total_bytes
    if (
        asked is not None
        and ask.source_file is None
        and flow.sent_bytes is not None
        and flow.sent_bytes < asked * _ROUNDED
    ):
        yield f"{flow.sent_bytes} bytes were sent of {asked} that were asked for"


def _check_surplus(ask: JobSpec, flow: Flow, in_flight: int) -> Iterator[str]:
    """Finds more bytes received than sent."""
    sent, received = flow.sent_bytes, flow.received_bytes
    if ask.transport == "udp" or sent is None or received is None:  # a network may double a datagram
        return
    if received > sent * (1 + _MARGIN) + in_flight:
        yield f"{received} bytes arrived of {sent} that were sent"


def _check_speed(ask: JobSpec, flow: Flow, link_bits_per_s: float | None) -> Iterator[str]:
    for name, rate in (("sent", flow.sent_bits_per_s), ("received", flow.received_bits_per_s)):
        if rate is not None and rate > CEILING_BITS_PER_S:
            yield f"{rate:g} bit/s {name}, more than anything carries"
            return
    rate = flow.bits_per_s
    if link_bits_per_s is None or rate is None:
        return
    duration_s = flow.duration_s or ask.duration_s
    most = link_bits_per_s * (1 + _MARGIN + (_START_S / duration_s if duration_s else 0))
    if flow.received_bits_per_s is None:
        if ask.transport == "udp" or not duration_s:  # a sender's host drops what its link does not take
            return
        most += 8 * ask.streams * max(ask.window_bytes or 0, _SEND_BUFFER_BYTES) / duration_s
    if rate > most:
        yield f"{rate:g} bit/s of payload over a link of {link_bits_per_s:g} bit/s"


def _check_duration(ask: JobSpec, flow: Flow) -> Iterator[str]:
    asked_s, took_s = ask.duration_s, flow.duration_s
    if took_s is not None and took_s == 0:
        yield "it says that it took no time"
    if asked_s is None or took_s is None or ask.total_bytes is not None:
        return
    too_short = took_s < asked_s * _SHORTEST - _SHORTER_S and ask.source_file is None  # a file may end before
    if too_short or took_s > asked_s * _LONGEST + _LONGER_S:
        yield f"it took {took_s:g} s, and {asked_s:g} s were asked for"


def _check_rates(flow: Flow) -> Iterator[str]:
    """Compares bytes over time with the rate, and the sum of the streams with the total."""
    if flow.received_bytes is not None and flow.duration_s and flow.received_bits_per_s is not None:
        computed = flow.received_bytes * 8 / flow.duration_s
        if abs(computed - flow.received_bits_per_s) > 0.05 * max(computed, flow.received_bits_per_s):
            yield f"{flow.received_bits_per_s:g} bit/s, where its bytes and seconds make {computed:g}"
    for name in ("sent_bits_per_s", "received_bits_per_s"):
        whole = getattr(flow, name)
        parts = [getattr(stream, name) for stream in flow.streams]
        if whole is None or not parts or any(part is None for part in parts):
            continue
        total = sum(parts)
        if math.isinf(total) or abs(total - whole) > _MARGIN * max(total, whole):
            yield f"its {len(parts)} streams make {total:g} bit/s together, and it says {whole:g}"


def _check_requests(figures: Figures) -> Iterator[str]:
    if figures.latency is None and not figures.transactions_per_s:
        yield "nothing is said of any request"
    if figures.transactions_per_s is not None and not 0 < figures.transactions_per_s < 1e10:
        yield f"{figures.transactions_per_s:g} transactions a second"
    if figures.latency is not None:
        yield from _check_latency(figures.latency)


def _check_latency(latency: RequestLatency) -> Iterator[str]:
    if latency.count == 0:
        yield "not one request was answered"
    if all(one is None for one in (latency.minimum_ns, latency.mean_ns, latency.maximum_ns)) and not (
        latency.percentiles_ns
    ):
        yield "no latency is said"
    known = without_none((latency.minimum_ns, latency.mean_ns, latency.maximum_ns))
    # Tools print two or three decimals of a microsecond.
    if any(later < earlier - 10 for earlier, later in pairwise(known)):
        yield f"least, mean and greatest latency do not rise: {', '.join(f'{one:g}' for one in known)} ns"
    for name, value in (("mean", latency.mean_ns), ("greatest", latency.maximum_ns)):
        if value is not None and not 0 < value <= _LONGEST_LATENCY_NS:
            yield f"a {name} latency of {value:g} ns"
    for name, value in latency.percentiles_ns.items():
        if latency.maximum_ns is not None and value > latency.maximum_ns * (1 + _MARGIN) + 10:
            yield f"{name} % within {value:g} ns, more than the greatest, {latency.maximum_ns:g}"
    ordered = [value for _, value in sorted((float(name), value) for name, value in latency.percentiles_ns.items())]
    if any(later < earlier for earlier, later in pairwise(ordered)):
        yield "its percentiles do not rise"
