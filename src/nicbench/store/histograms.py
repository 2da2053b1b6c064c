"""Latency histograms: decodes those of the engine, and writes latency.hlog, the HdrHistogram log of a run."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Iterable

from hdrh.codec import HdrCookieException, HdrLengthException
from hdrh.histogram import HdrHistogram

from nicbench.core.errors import HostError
from nicbench.core.trial import Purpose, Trial

# HdrHistogram's V2 encoding: plain, or in a wrapper that is compressed. The low byte's upper half is the word size.
_V2_PLAIN = 0x1C849303
# V2 of the format: cookie, length, normalizing offset, digits, lowest, highest, conversion ratio.
_HEAD = struct.Struct(">IIiIQQd")
_WRAPPER_BYTES = 8  # before the compressed payload: a cookie and its length
_MOST_BYTES = 16 * 2**20  # twice what every count of the widest histogram takes
_MOST_DIGITS = 5
_UNDECODABLE = (
    zlib.error,
    struct.error,
    ValueError,
    RuntimeError,
    TypeError,
    LookupError,
    ArithmeticError,
    MemoryError,
    HdrCookieException,
    HdrLengthException,
)
_NANOSECONDS_PER_MILLISECOND = 1e6  # logs give the interval's maximum in milliseconds, by convention


def decode(encoded: str) -> HdrHistogram:
    """Decodes a histogram from base64, plain or compressed V2. HostError where it is damaged."""
    try:
        raw = base64.b64decode(encoded, validate=True)
        if int.from_bytes(raw[:4], "big") & ~0xF0 == _V2_PLAIN:
            _check(raw)
            histogram = HdrHistogram.decode(zlib.compress(raw), b64_wrap=False)
            histogram.b64_wrap = histogram.encoder.b64_wrap = True
            return histogram
        _check(_unpack(raw[_WRAPPER_BYTES:]))
        return HdrHistogram.decode(encoded)
    except _UNDECODABLE as error:
        raise HostError(f"a latency histogram cannot be decoded: {error}") from error


def _unpack(packed: bytes) -> bytes:
    """Decompresses within bounds: a few bytes of zlib can stand for gigabytes."""
    unpacker = zlib.decompressobj()
    content = unpacker.decompress(packed, _MOST_BYTES)
    if unpacker.unconsumed_tail:
        raise ValueError(f"it is larger than {_MOST_BYTES // 2**20} MiB")
    return content


def _check(payload: bytes) -> None:
    """Checks the head of a histogram before memory is allocated for its counts. ValueError where it is invalid."""
    if len(payload) < _HEAD.size:
        raise ValueError("it is too short")
    _, _, _, digits, lowest, highest, _ = _HEAD.unpack_from(payload)
    if not 1 <= digits <= _MOST_DIGITS or not 1 <= lowest <= highest // 2 or highest >= 2**63:
        raise ValueError(f"it cannot be from {lowest} to {highest} with {digits} digits")


def latency_log(trials: Iterable[Trial]) -> str:
    """Writes the log: an interval histogram for each latency trial, tagged with its id, at its seconds of the run."""
    lines = [
        "#[Histogram log format version 1.3]",
        "#[Latency in nanoseconds; Tag is the trial's id in journal.ndjson; Interval_Max in milliseconds]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]
    for trial in trials:
        latency = trial.reading.latency
        if trial.request.purpose not in (Purpose.LATENCY, Purpose.TESTER_LATENCY):
            continue
        if latency is None or latency.histogram is None:
            continue
        tag = re.sub(r"[\s,]", "_", trial.id)  # a comma or blank would end the tag
        encoded = decode(latency.histogram).encode().decode("ascii")
        maximum_ms = latency.maximum_ns / _NANOSECONDS_PER_MILLISECOND
        lines.append(
            f"Tag={tag},{trial.at_s or 0.0:.3f},{trial.reading.transmit_ns / 1e9:.3f},{maximum_ms:.6f},{encoded}"
        )
    return "\n".join(lines) + "\n"
