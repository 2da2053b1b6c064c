"""Run folders as damage, or somebody who means harm, would leave them: each case changes a copy of one good folder.

``DAMAGED`` differ from their manifest or cannot be read; ``FORGED`` agree with it, for whoever forges a file writes the
manifest anew. Every text that they bring in holds ``CANARY``.
"""

from __future__ import annotations

import base64
import json
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from nicbench.store import manifest
from nicbench.store.monitor_samples import SCHEMA

CANARY: Final = "canary"
SECRET: Final = "the secret of another file"
Case = Callable[[Path, Path], None]
"""Given the run folder, and a file outside of it that holds the secret."""

_NAMES = ("bench.yaml", "journal.ndjson", "summary.json", "plan.json", "inventory.json", "MANIFEST.json")
_TEXTS = {
    "html": f"<script>document.title='{CANARY}'</script><img src=x onerror=\"document.title='{CANARY}'\">",
    "attribute": f"\"' onmouseover='document.title=1' autofocus onfocus=alert(1) x=\"{CANARY}",
    "end of style": f"</style></title></svg></script><svg onload=\"document.title='{CANARY}'\">",
    "url": f"javascript:document.title='{CANARY}'",
    "template": f"{{{{ 7*7 }}}}{{% raw %}} {CANARY}",
    "chart": f"datum['x']; {{\"signal\": \"warn('{CANARY}')\"}} \\u003c",
    "terminal": f"\x1b]0;{CANARY}\x07\x1b[2J\x1b[31m\x9b31m\x7f\r",
    "bidi": f"\u202e{CANARY}\u2066\u200f\u2028",
    "markup": f"[/] [bold]{CANARY}[/bold] [link=file:///etc/passwd]x[/link] \\",
    "formula": f'=HYPERLINK("http://{CANARY}.invalid","x")+cmd|\' /C calc\'!A0',
    "lines": f"good\n2026-01-01T000000Z-{CANARY}  valid\n" + "\n" * 50,
    "long": CANARY * 5_000,
}


def _changed(name: str, content: bytes) -> Case:
    return lambda folder, _: _put(folder / name, content)


def _put(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _linked(name: str) -> Case:
    def case(folder: Path, outside: Path) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to(outside)

    return case


def _piped(name: str) -> Case:
    def case(folder: Path, _: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return case


def _foldered(name: str) -> Case:
    def case(folder: Path, _: Path) -> None:
        (folder / name).unlink()
        (folder / name).mkdir()

    return case


def _sparse(name: str) -> Case:
    def case(folder: Path, _: Path) -> None:
        os.truncate(folder / name, 2**38)

    return case


def _cut(name: str) -> Case:
    def case(folder: Path, _: Path) -> None:
        os.truncate(folder / name, (folder / name).stat().st_size // 2)

    return case


def _from_outside(folder: Path, outside: Path) -> None:
    names = {"../../outside.txt": "0" * 64, str(outside): "0" * 64, "raw/../../../x\x1b[31m\n": "0" * 64}
    _put(folder / "MANIFEST.json", json.dumps({"format": "1.0", "sha256": names}).encode())


DAMAGED = {
    **{f"{name} is a link": _linked(name) for name in _NAMES},
    **{f"{name} is a pipe": _piped(name) for name in _NAMES},
    **{f"{name} is a folder": _foldered(name) for name in _NAMES},
    **{f"{name} was cut": _cut(name) for name in _NAMES},
    **{f"{name} is gone": lambda folder, _, name=name: (folder / name).unlink() for name in _NAMES[:-1]},
    **{f"{name} is sparse": _sparse(name) for name in ("summary.json", "journal.ndjson", "MANIFEST.json")},
    "another result": lambda folder, _: _put(
        folder / "summary.json", (folder / "summary.json").read_bytes().replace(b'"lower": ', b'"lower": 9')
    ),
    "an import in it": _changed("import.json", b"{}"),
    "manifest too deep": _changed("MANIFEST.json", b"[" * 500_000),
    "manifest of other folders": _from_outside,
    "manifest is no text": _changed("MANIFEST.json", b"\xff\xfe\x00"),
    "manifest with a number of a million digits": _changed("MANIFEST.json", b'{"format": ' + b"9" * 1_000_000 + b"}"),
}


def _signed(change: Callable[[Path], None]) -> Case:
    def case(folder: Path, _: Path) -> None:
        change(folder)
        manifest.write(folder)

    return case


def _said(text: str) -> Case:
    """In the place of every title, host, place, note and name of a run."""

    def change(folder: Path) -> None:
        for name in ("journal.ndjson", "summary.json", "plan.json", "inventory.json"):
            lines = (
                (folder / name).read_text().splitlines() if name.endswith("ndjson") else [(folder / name).read_text()]
            )
            lines = [json.dumps(_replaced(json.loads(line), text)) for line in lines]
            _put(folder / name, ("\n".join(lines) + "\n").encode())
        _put(folder / "bench.yaml", text.encode())

    return _signed(change)


_FREE = {
    *("title", "description", "text", "place", "counter", "host_name", "os", "cpu_model", "kernel_command_line"),
    *("kernel_release", "virtual_machine", "wall_time", "test", "disturbances", "nicbench_version", "run_id"),
}


def _replaced(value: Any, text: str, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _replaced(each, text, name) for name, each in value.items()}
    if isinstance(value, list):
        return [_replaced(each, text, key) for each in value]
    return f"{text}{value}" if isinstance(value, str) and key in _FREE else value


def _journal(change: Callable[[list[str]], list[str]]) -> Case:
    def changed(folder: Path) -> None:
        lines = (folder / "journal.ndjson").read_text().splitlines()
        _put(folder / "journal.ndjson", ("\n".join(change(lines)) + "\n").encode("utf-8", "surrogatepass"))

    return _signed(changed)


def _histogram(pack: Callable[[], bytes]) -> Case:
    """Puts what ``pack`` makes in place of each histogram; it is made when the case runs, as it may take a second."""

    def of_line(line: str, encoded: str) -> str:
        event = json.loads(line)
        latency = event.get("trial", {}).get("reading", {}).get("latency")
        if latency:
            latency["histogram"] = encoded
        return json.dumps(event)

    def change(lines: list[str]) -> list[str]:
        packed = pack()
        encoded = base64.b64encode(struct.pack(">II", 0x1C849314, len(packed)) + packed).decode()
        return [of_line(line, encoded) for line in lines]

    return _journal(change)


def _head(digits: int, lowest: int, highest: int) -> bytes:
    return zlib.compress(struct.pack(">IIiIQQd", 0x1C849313, 4, 0, digits, lowest, highest, 1.0) + b"\x02\x02\x02\x02")


def _unfinished(folder: Path, _: Path) -> None:
    (folder / "MANIFEST.json").unlink()
    with (folder / "journal.ndjson").open("ab") as stream:
        stream.write(b'{"event": ' + b"[" * 200_000)


def _monitored(folder: Path) -> None:
    """A name of a megabyte in each of a hundred thousand rows: a small file that stands for a hundred gigabytes."""
    rows = 100_000
    long = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["h" * 2**20]))
    numbers = {"session": 1, "at_s": 1.0, "time_ns": 1, "interval_ns": 1, "value": 1}
    columns = [
        pa.array([numbers[each.name]] * rows, each.type)
        if each.name in numbers
        else long
        if each.name == "host"
        else pa.array(["cpu_user_ns"] * rows)
        for each in SCHEMA
    ]
    pq.write_table(pa.Table.from_arrays(columns, names=SCHEMA.names), folder / "monitor.parquet", compression="zstd")


_NUMBER = b'{"dut": {"cpus": %s}, "tester": {}}'
FORGED = {
    **{f"text: {name}": _said(text) for name, text in _TEXTS.items()},
    **{
        f"inventory: {name}": _signed(lambda folder, content=content: _put(folder / "inventory.json", content))
        for name, content in {
            "a list": b"[1]",
            "a number for a host": b'{"dut": 5, "tester": "x"}',
            "lists for facts": b'{"dut": {"host_name": ["x"], "memory_bytes": {}, "tsc_hz": "fast", "cpus": []}}',
            "NaN": _NUMBER % b"NaN",
            "infinity": _NUMBER % b"1e999",
            "half a character": b'{"dut": {"host_name": "\\ud800"}}',
            "no UTF-8": b'{"dut": {"host_name": "\xff"}}',
            "deep": b'{"dut": {"host_name": ' + b"[" * 190 + b"]" * 190 + b"}}",
            "too deep": b'{"dut": ' + b"[" * 500_000,
            "keys twice": b'{"dut": {"cpus": 2, "cpus": 3}, "dut": {"cpus": 4}}',
        }.items()
    },
    "bench file is no text": _signed(lambda folder: _put(folder / "bench.yaml", b"title: \xff\xfe\x1b[31m")),
    "NaN in a trial": _journal(lambda lines: [line.replace('"at_s":', '"at_s":NaN,"x":') for line in lines]),
    "infinite time": _journal(
        lambda lines: [line.replace('"transmit_ns":', '"transmit_ns":1e999,"x":') for line in lines]
    ),
    "NaN as a rate": _signed(
        lambda folder: _put(
            folder / "summary.json",
            (folder / "summary.json").read_bytes().replace(b'"lower": ', b'"lower": 1e999, "x": '),
        )
    ),
    "half a character in the journal": _journal(
        lambda lines: [lines[0].replace('"title":"', '"title":"\\ud800'), *lines[1:]]
    ),
    "deep line": _journal(lambda lines: [*lines, '{"event":' + "[" * 500_000]),
    "deep line before others": _journal(lambda lines: [lines[0], "[" * 500_000, *lines[1:]]),
    "histogram of gigabytes": _histogram(lambda: zlib.compress(bytes(2**28))),
    "histogram without digits": _histogram(lambda: _head(0, 1, 10**9)),
    "histogram of endless digits": _histogram(lambda: _head(200, 1, 2**62)),
    "histogram from nothing": _histogram(lambda: _head(3, 0, 0)),
    "histogram that is none": _histogram(lambda: b"\x00" * 40),
    "monitor table is none": _signed(lambda folder: _put(folder / "monitor.parquet", b"PAR1" + b"\xff" * 64 + b"PAR1")),
    "monitor table of gigabytes": _signed(_monitored),
    "torn and too deep": _unfinished,
}
