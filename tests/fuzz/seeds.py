"""Inputs to begin with, of each target: what is recorded, published or written as an example anyway."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PROTOCOL: Final = ROOT / "protocol" / "examples"
GOLDEN_FRAMES: Final = ROOT / "engine" / "packets" / "tests" / "golden"
NEXT_FILE, NEXT_SAMPLE = b"\x1e", b"\x1d"
KERNEL_FILES: Final = (
    *("proc/stat", "proc/interrupts", "proc/softirqs", "proc/net/softnet_stat", "proc/net/dev", "proc/diskstats"),
    *("proc/meminfo", "proc/pressure/cpu", "proc/pressure/io", "proc/pressure/memory", "proc/cpuinfo"),
    *("proc/sys/kernel/osrelease", "proc/self/stat"),
)
"""In the order of engine/monitor/tests/fuzz_corpus/files.rs."""
MANIFEST: Final = (
    '{"format": "nicbench-frames 1", "seed": 1, "content": "unique", "files": {"pattern": "f%03d"}, "first": 5, '
    '"frames": 2, "header_bytes": 0, "picture": {"bytes": 5000}, "rounded_to_bytes": 1}'
)
RUST: Final = ("answers", "captures", "files", "lines", "manifests", "receive", "wire")
PYTHON: Final = (
    *("bench_files", "engine_lines", "otg_messages", "records", "run_folders", "system_texts", "tables"),
    "tool_outputs",
)
TARGETS: Final = (*RUST, *PYTHON)
"""Those of engine/fuzz, and those of targets.py."""


def kept_file(target: str) -> Path:
    """The file of a target's corpus in the repository: an input a line, in base64."""
    folder = ROOT / ("engine/fuzz/corpus" if target in RUST else "tests/fuzz/corpus")
    return folder / f"{target}.txt"


def kept(target: str) -> list[bytes]:
    """The inputs in it."""
    path = kept_file(target)
    return [base64.b64decode(line) for line in path.read_text().splitlines()] if path.exists() else []


def seeds(target: str) -> Iterator[bytes]:
    """What is kept of the target, and what there is beside."""
    yield from kept(target)
    if target in _SEEDS:
        yield from _SEEDS[target]()


def _conversations() -> Iterator[bytes]:
    """Requests of the controller, each conversation as one input and each line as another."""
    for path in sorted(PROTOCOL.rglob("*.ndjson")):
        said = [line[2:] for line in path.read_text().splitlines() if line.startswith("> ")]
        yield "\n".join(said).encode()
        yield from (line.encode() for line in said)


def _answers_of_servers() -> Iterator[bytes]:
    """Answers of HTTP/1.1, whole and in pieces, as such of any length and of three bytes."""
    head = b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\n"
    chunks = b"1\r\nx\r\n2;name=value\r\nxx\r\n0\r\nTrailer: a\r\n\r\n"
    for answer in (
        head + b"Content-Length: 3\r\nConnection: close\r\n\r\nxxx",
        head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks,
        head + b"Content-Length: 0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nxxx",
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
    ):
        for asked in (0, 1, 7):
            yield from (bytes((asked, step)) + answer for step in (1, 7, 255))


def _captures() -> Iterator[bytes]:
    yield from (path.read_bytes() for path in sorted(GOLDEN_FRAMES.glob("*.pcap*")))


def _kernel_files() -> Iterator[bytes]:
    files = [
        (number, Path("/", name).read_bytes()[:4000]) for number, name in enumerate(KERNEL_FILES) if _is_there(name)
    ]
    one = [bytes([number]) + content for number, content in files]
    yield from (each + NEXT_SAMPLE + each for each in one)
    yield NEXT_FILE.join(one) + NEXT_SAMPLE + NEXT_FILE.join(one)


def _is_there(name: str) -> bool:
    return Path("/", name).exists()


def _manifests() -> Iterator[bytes]:
    requests = re.findall(
        r'"command": "configure", ?(.*)\}$', (PROTOCOL / "frames/write.ndjson").read_text(), re.MULTILINE
    )
    for manifest in (MANIFEST, MANIFEST.replace('"pattern": "f%03d"', '"streamed": "stream"')):
        yield manifest.encode()
        yield MANIFEST.replace('"bytes": 5000', '"compressed_from_bytes": 5000').encode()
        for request in requests:
            for task in ("write", "read"):
                yield f"{manifest}\x1e{{{request}}}".replace('"task": "write"', f'"task": "{task}"').encode()


def _frames() -> Iterator[bytes]:
    """Frames in the pcap files, cut out of their records."""
    for path in sorted(GOLDEN_FRAMES.glob("*.pcap")):
        content, at = path.read_bytes(), 24
        while at + 16 < len(content):
            length = int.from_bytes(content[at + 8 : at + 12], "little")
            yield b"\x00" + content[at + 16 : at + 16 + length]
            at += 16 + length


def _bench_files() -> Iterator[bytes]:
    yield from (path.read_bytes() for path in sorted((ROOT / "examples").glob("*.yaml")))


def _tool_outputs() -> Iterator[bytes]:
    """Each recording for its tool, as an answer to everything that can be asked for."""
    from tests.fuzz.targets import TOOLS
    from tests.workloads.test_tool_output import ASKS, RECORDED

    for path in RECORDED:
        tool = next((number for number, kind in enumerate(TOOLS) if path.name.startswith(f"{kind}-")), None)
        if tool is not None:
            yield from (bytes([tool, ask]) + path.read_bytes() for ask in range(len(ASKS)))


def _system_texts() -> Iterator[bytes]:
    from tests.system.inventory.test_hostile_text import PARSERS, goldens

    for number, line in enumerate(PARSERS):
        yield from (bytes([number]) + golden.encode() for golden in goldens(line)[:4])


def _tables() -> Iterator[bytes]:
    """Each table as every format and method, and recordings."""
    from tests.fuzz.targets import _ways

    golden = ROOT / "tests/importing/golden"
    recorded = sorted(golden.glob("*.nmon"))
    yield from (b"\x00" + path.read_bytes()[:20_000] for path in recorded)
    published = sorted((ROOT / "src/nicbench/importing/reference/data").glob("*.csv"))
    for path in (*golden.glob("*.csv"), *published):
        content = b"\n".join(path.read_bytes().splitlines()[:12])
        yield from (bytes([way]) + content for way in range(1, len(_ways())))


def _engine_lines() -> Iterator[bytes]:
    """What the engine answers where each trial of the examples is asked for as the controller asks."""
    engine = ROOT / "engine/target/release/nicbench-packets"
    wanted = ("hello", "configure", "start", "drain", "settle")
    for path in sorted(PROTOCOL.glob("*.ndjson")) if engine.exists() else []:
        asked = {}
        for line in path.read_text().splitlines():
            found = re.fullmatch(r'> \{"id": \d+, "command": "(\w+)"(.*)', line)
            if found:
                asked[found[1]] = found[2]
        if {*wanted} - {*asked}:
            continue
        yield _answers(engine, [f'{{"id": {n}, "command": "{name}"{asked[name]}' for n, name in enumerate(wanted, 1)])


def _answers(engine: Path, requests: list[str]) -> bytes:
    """Each request is sent once the one before it is answered, and the third, a trial, is over."""
    said = b""
    with (
        tempfile.TemporaryDirectory() as folder,  # some write files where they are
        subprocess.Popen([engine], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder) as process,
    ):
        assert process.stdin
        assert process.stdout
        for number, request in enumerate(requests, 1):
            process.stdin.write(request.encode() + b"\n")
            process.stdin.flush()
            until = b'"event":"transmitted"' if number == 3 else b'{"id":%d,' % number
            while line := process.stdout.readline():
                said += line
                if until in line or b'"ok":false' in line:
                    break
        process.stdin.close()
    return said


def _otg_messages() -> Iterator[bytes]:
    """A configuration with each header of the model as its defaults are, and each change of one."""
    import snappi
    from tests.fuzz.targets import CONFIG, OTG_KINDS
    from tests.otg.frames import PORTS, flow

    from nicbench.otg.headers import ENCODERS

    for kind in ENCODERS:
        made = snappi.Config().flows.add(name="f")
        made.tx_rx.port.tx_name, made.tx_rx.port.rx_names = "p1", ["p2"]
        header = getattr(made.packet.ethernet().ipv4().udp(), kind)()[-1]
        if kind == "custom":
            header.bytes = "00ff"
        for name in sorted({*header._TYPES} - {"dst_usids", "usids"}):
            getattr(header, name)  # what is never asked for is not written
        yield b"\0" + json.dumps({"ports": PORTS, "flows": [json.loads(made.serialize())]}).encode()
    fast = {"name": "f", "rate": {"choice": "percentage", "percentage": 50}, "size": {"choice": "fixed", "fixed": 128}}
    changes = {
        "Config": {**CONFIG, "captures": [{"name": "c", "port_names": ["p2"]}], "layer1": [{"name": "l", "mtu": 9000}]},
        "ConfigUpdate": {"choice": "flows", "flows": {"property_names": ["rate", "size"], "flows": [fast]}},
        "ConfigAppend": {"config_append_list": [{"flows": [{**CONFIG["flows"][0], "name": "g"}]}]},
        "ConfigDelete": {"config_delete_list": [{"flows": ["f"]}]},
    }
    yield from (bytes([OTG_KINDS.index(kind)]) + json.dumps(message).encode() for kind, message in changes.items())
    duration = {"choice": "burst", "burst": {"bursts": 3, "packets": 9, "gap": 12}}
    size = {"choice": "weight_pairs", "weight_pairs": {"choice": "predefined", "predefined": "imix"}}
    patterns = {
        "choice": "ipv4",
        "ipv4": {
            "src": {"choice": "values", "values": ["10.0.0.1", "10.0.0.2"]},
            "dst": {"choice": "increment", "increment": {"start": "10.1.0.1", "step": "0.0.0.1", "count": 9}},
            "identification": {"choice": "random", "random": {"min": 1, "max": 9, "seed": 1, "count": 5}},
        },
    }
    varied = flow([{"choice": "ethernet", "ethernet": {}}, patterns], duration=duration, size=size)
    yield b"\0" + json.dumps({"ports": PORTS, "flows": [varied]}).encode()


def _records() -> Iterator[bytes]:
    """Each kind of undo, as a record of a process that has ended, of root and of others."""
    from tests.fuzz.folders import BOOT

    undos = json.loads((ROOT / "tests/tuning/golden/undo.json").read_text())
    owner = {"pid": 1, "start_ticks": 999_999_999, "boot_id": BOOT.decode()}
    for entries in (undos["entries"], *([one] for one in undos["entries"])):
        record = {**undos, "run_id": "run", "owner": owner, "entries": [{**one, "done": False} for one in entries]}
        yield from (bytes([state]) + json.dumps(record).encode() for state in range(2))


def _run_folders() -> Iterator[bytes]:
    """Each file of a good folder, as it is, changed by somebody and signed."""
    from tests.fuzz.folders import COMPARED, EXPORTED, EXPORTS, FILES, GOOD, REPORTED, SIGNED, _runs

    ways = (0, SIGNED, SIGNED | REPORTED, SIGNED | COMPARED, *(SIGNED | EXPORTED | n << 4 for n in range(len(EXPORTS))))

    for number, name in enumerate(FILES):
        path = _runs() / GOOD / name
        if path.exists():
            yield from (bytes([number, done]) + path.read_bytes() for done in ways)


_SEEDS = {
    "answers": _answers_of_servers,
    "bench_files": _bench_files,
    "captures": _captures,
    "engine_lines": _engine_lines,
    "files": _kernel_files,
    "lines": _conversations,
    "manifests": _manifests,
    "otg_messages": _otg_messages,
    "records": _records,
    "run_folders": _run_folders,
    "system_texts": _system_texts,
    "tables": _tables,
    "tool_outputs": _tool_outputs,
    "wire": _frames,
}
