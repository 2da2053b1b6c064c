"""Samples that are kept whole: latency histograms, and the times of media frames."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hdrh.codec import HdrCookieException, HdrLengthException
from hdrh.histogram import HdrHistogram

from nicbench.core.errors import HostError
from nicbench.core.frozen import frozen
from nicbench.core.round import Round
from nicbench.core.trial import Purpose, Trial
from nicbench.store.files import damaged_error, storage_error, writing_atomically
from nicbench.store.folder import FRAMES

# Latency histograms: decodes those of the engine, and writes latency.hlog, the HdrHistogram log of a run.

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


# frames/r0001.parquet: every frame's times of a round, of each process that timed them, for other programs.  The
# folder is one dataset (``pyarrow.dataset``, ``pandas.read_parquet``). What ``nicbench-frames`` wrote on its host
# (protocol/frames.md, "Samples") is read piece by piece, so that its size is not bounded by memory. Null: there was
# no such time.

_FORMAT: Final = 1
_HEADER = struct.Struct("<8sIII4xQ32x")
_MAGIC: Final = b"NBSAMPLE"
_NONE: Final = np.iinfo(np.int64).min
_MEASURED, _DROPPED = 1, 2
_ROWS: Final = 200_000  # kept in memory at one time

_NUMBERS: Final = {
    "position": "in the order of the work, from 0",
    "frame": "the number in the file's name, or of existing files the index among those found",
    "bytes": "bytes",
    "turn_ns": "ns since the first frame's turn: when it had its own",
    "begun_ns": "ns since the first frame's turn",
    "open_ns": "ns, a duration",
    "io_ns": "ns, a duration",
    "sync_ns": "ns, a duration",
    "close_ns": "ns, a duration",
    "completed_ns": "ns since the first frame's turn",
    "late_by_ns": "ns, completed less due: below 0 in time; null without a limit",
}
_RECORD = np.dtype([("thread", "<u2"), ("flags", "<u2"), ("zeros", "<u4"), *((name, "<i8") for name in _NUMBERS)])


def _field(name: str, kind: pa.DataType, meaning: str, *, nullable: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=nullable, metadata={"unit": meaning})


_SAME: Final = ("round", "test", "configuration", "run", "warm_up", "task", "instance", "client", "began_at_ns")
"""Columns with the same value in all rows of a process."""
_SCHEMA = pa.schema(
    [
        _field("round", pa.string(), "as in rounds.parquet"),
        _field("test", pa.string(), "its name in the bench file"),
        _field("configuration", pa.string(), "its name in the bench file"),
        _field("run", pa.int64(), "of the configuration, from 1"),
        _field("warm_up", pa.bool_(), "of the whole round"),
        _field("task", pa.string(), "prepare, write or read", nullable=True),
        _field("instance", pa.int64(), "the job of the round, from 1"),
        _field("client", pa.string(), "its port in the bench file"),
        _field("began_at_ns", pa.int64(), "ns of its host's monotonic clock: the first frame's turn"),
        _field("thread", pa.int32(), "of the process, from 0"),
        _field("measured", pa.bool_(), "not in the warm-up"),
        _field("dropped", pa.bool_(), "complete after it was due"),
        *(_field(name, pa.int64(), told, nullable=True) for name, told in _NUMBERS.items()),
    ],
    metadata={"nicbench.frames": '{"format": "1.0"}'},
)


@frozen
class Samples:
    """A checked file of records. Its last ``cut_bytes`` are an incomplete record, as after a kill."""

    path: Path
    frames: int
    began_at_ns: int
    cut_bytes: int


def check_samples(path: Path) -> Samples:
    """Checks a file of records. HostError, with the file's name, if it is not one or holds invalid records."""
    try:
        samples = _by_header(path)
        for number, records in enumerate(_pieces(samples)):
            wrong = np.flatnonzero((records["zeros"] != 0) | (records["flags"] > (_MEASURED | _DROPPED)))
            if len(wrong):
                raise _unusable(path, f"holds what is no sample, at record {number * _ROWS + int(wrong[0]) + 1}")
    except OSError as error:
        raise storage_error(error, path, _WITHOUT) from error
    return samples


def _by_header(path: Path) -> Samples:
    with path.open("rb") as stream:
        header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size or not header.startswith(_MAGIC):
        raise _unusable(path, f"is no file of samples: it begins with {header[:8]!r}")
    _, version, header_bytes, record_bytes, began_at_ns = _HEADER.unpack(header)
    if (version, header_bytes, record_bytes) != (_FORMAT, _HEADER.size, _RECORD.itemsize):
        told = f"version {version}, records of {record_bytes} bytes after {header_bytes}"
        known = f"version {_FORMAT}, records of {_RECORD.itemsize} bytes after {_HEADER.size}"
        raise _unusable(path, f"has samples in another format ({told}) than this nicbench knows ({known})")
    frames, cut_bytes = divmod(path.stat().st_size - _HEADER.size, _RECORD.itemsize)
    return Samples(path, frames, began_at_ns, cut_bytes)


def write(run_folder: Path, one: Round, samples: Mapping[int, Samples]) -> None:
    """Writes the file of a round, all or nothing; ``samples`` are by job, from 1."""
    path = run_folder / FRAMES / f"{one.id}.parquet"
    try:
        path.parent.mkdir(exist_ok=True)
        with writing_atomically(path) as stream, pq.ParquetWriter(stream, _SCHEMA, **_AS_STORED) as writer:
            for table in _tables(one, samples):
                writer.write_table(table)
    except OSError as error:
        raise storage_error(error, path) from error
    except pa.ArrowException as error:
        raise damaged_error(error, path) from error


_WITHOUT: Final = "the round stands without its samples"
# Times rise and durations are alike: stored as differences, a frame takes 15 to 19 bytes instead of 96.
_AS_STORED: Final = {
    "compression": "zstd",
    "use_dictionary": [*_SAME, "thread"],
    "column_encoding": dict.fromkeys(_NUMBERS, "DELTA_BINARY_PACKED"),
}


def _unusable(path: Path, why: str) -> HostError:
    return HostError(why, place=str(path), next_step=f"{_WITHOUT}; see that one nicbench wrote and reads it")


def _pieces(samples: Samples) -> Iterator[np.ndarray[Any, np.dtype[Any]]]:
    for first in range(0, samples.frames, _ROWS):
        count = min(_ROWS, samples.frames - first)
        offset = _HEADER.size + first * _RECORD.itemsize
        yield np.fromfile(samples.path, dtype=_RECORD, count=count, offset=offset)


def _tables(one: Round, samples: Mapping[int, Samples]) -> Iterator[pa.Table]:
    """Makes tables, each a row group; small processes share one, because a row group has a cost of its own."""
    batches = []
    for number, each in sorted(samples.items()):
        for records in _pieces(each):
            batches.append(_batch(_same(one, number, each), records))
            if sum(batch.num_rows for batch in batches) >= _ROWS:
                yield pa.Table.from_batches(batches)
                batches = []
    yield pa.Table.from_batches(batches, schema=_SCHEMA)


def _same(one: Round, number: int, samples: Samples) -> dict[str, Any]:
    job = one.request.jobs[number - 1]
    return {
        "round": one.id,
        "test": one.test,
        "configuration": one.configuration,
        "run": one.run,
        "warm_up": one.warm_up,
        "task": None if job.ask.frames is None else job.ask.frames.task,
        "instance": number,
        "client": job.client,
        "began_at_ns": samples.began_at_ns,
    }


def _batch(same: Mapping[str, Any], records: np.ndarray[Any, np.dtype[Any]]) -> pa.RecordBatch:
    columns = {name: pa.repeat(pa.scalar(same[name], _SCHEMA.field(name).type), len(records)) for name in _SAME}
    columns["thread"] = pa.array(records["thread"].astype(np.int32))
    columns["measured"] = pa.array(records["flags"] & _MEASURED != 0)
    columns["dropped"] = pa.array(records["flags"] & _DROPPED != 0)
    for name in _NUMBERS:
        columns[name] = pa.array(np.ascontiguousarray(records[name]), mask=records[name] == _NONE)
    return pa.RecordBatch.from_arrays([columns[name] for name in _SCHEMA.names], schema=_SCHEMA)
