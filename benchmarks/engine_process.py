"""Our engine, kept running over many samples: ports are opened once, each sample is one trial."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from nicbench.engine.binaries import find_binary

RUN_KEY = "0123456789abcdef"
DESCRIPTORS = 2048
SILENCE_S = 3600.0


class EngineError(Exception):
    """The engine refused or ended; its message says why."""


class Engine:
    """One engine process with its ports."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
        )
        self._trials = itertools.count(1)

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def request(self, command: str, **fields: Any) -> dict[str, Any]:
        """One request and its reply; events between them are passed over."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"id": 1, "command": command, **fields}) + "\n")
        for line in self._process.stdout:
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == 1:
                if not message["ok"]:
                    raise EngineError(message["error"]["message"])
                return message
        errors = self._process.stderr.read() if self._process.stderr else ""
        raise EngineError(f"the engine ended during {command}: {errors.strip()}")

    def trial(
        self, streams: Sequence[dict[str, Any]], duration_s: float, *, drain_s: float = 0.0, **start: Any
    ) -> dict[str, Any]:
        """One transmission as ``start`` says, and its reading."""
        self.request("start", trial=next(self._trials), duration_s=duration_s, streams=list(streams), **start)
        return self.request("drain", duration_s=drain_s)

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()


@contextmanager
def engine(
    ports: Sequence[dict[str, Any]],
    *,
    worker_cpu: int,
    inside: Sequence[str] = (),
    memory_mib: int = 512,
    **fields: Any,
) -> Iterator[Engine]:
    """An engine whose ports are open; ``inside`` runs it elsewhere (``ip netns exec ...``)."""
    process = Engine([*inside, str(find_binary("nicbench-packets"))])
    try:
        process.request("hello", protocol="1.0")
        # It waits, or stands still, while others are measured.
        process.request("renew", duration_s=SILENCE_S)
        process.request(
            "configure", run_key=RUN_KEY, clock="tsc", worker_cpu=worker_cpu, memory_mib=memory_mib,
            ports=list(ports), **fields,
        )  # fmt: skip
        yield process
    finally:
        process.close()


def port(name: str, kind: str, **fields: Any) -> dict[str, Any]:
    """A port with the descriptors that the peers have too."""
    rings = {"transmit_descriptors": DESCRIPTORS, "receive_descriptors": DESCRIPTORS}
    return {"name": name, "kind": kind, **rings, **fields}


def stream(
    flows: int = 1, *, transmit: int = 0, receive: int = 0, frame_bytes: int = 64, **fields: Any
) -> dict[str, Any]:
    """IPv4 and UDP, as fast as the port takes it; flows differ in the source port, then in the source address."""
    return {
        "name": f"{transmit}->{receive}", "transmit_port": transmit, "receive_port": receive,
        "frame_bytes": frame_bytes, "rate_frames_per_s": 0, "flows": flows,
        "source_mac": "02:00:00:00:00:01", "destination_mac": "02:00:00:00:00:02", "ip": 4,
        "source_address": "198.18.0.2", "destination_address": "198.19.0.2",
        "source_address_count": max(1, flows // 256), "source_port": 1024, "source_port_count": min(flows, 256),
        **fields,
    }  # fmt: skip


def frames_per_s(reading: dict[str, Any]) -> float:
    """What left the ports, of all streams."""
    return float(sum(each["sent"] for each in reading["streams"]) / reading["transmit_ns"] * 1e9)
