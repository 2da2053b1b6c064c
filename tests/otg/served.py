"""A `nicbench serve` of a test: started as a user does, driven by the real client, ended by a signal."""

from __future__ import annotations

import contextlib
import io
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import snappi
from scapy.utils import RawPcapReader

from nicbench.otg.flows import ServedPort

BENCH = """nicbench: 1
title: Served
lab: {lab}
dut: {{kind: simulated}}
"""
PORTS = {name: ServedPort(number, name, 10e9) for number, name in enumerate(("t0", "t1"))}
SIMULATED = "{kind: simulated, delay: 20 us}"


_ADDRESSES = re.compile(r"(https://\S+) +(http://\S+) +grpc://(\S+)")


@dataclass
class Served:
    """A server that runs: the addresses that it printed, and the folder of its runs."""

    https: str
    http: str
    grpc: str
    runs: Path
    process: subprocess.Popen[str]

    def api(self, transport: str = "http") -> Any:
        """A client of the stock package."""
        if transport == "grpc":
            return snappi.api(location=self.grpc, transport="grpc", version_check=True)
        return snappi.api(location=getattr(self, transport), transport="http", verify=False, version_check=True)

    def run_folder(self) -> Path:
        """The newest run folder."""
        return max(self.runs.iterdir())

    def trials(self, folder: Path | None = None) -> list[dict[str, Any]]:
        """The transmissions of a run folder's journal, by default of the newest."""
        return [event["trial"] for event in self.events(folder) if event["event"] == "trial_finished"]

    def results(self) -> list[dict[str, Any]]:
        """The results of the newest journal: a row for each flow of each transmission."""
        return [event["result"] for event in self.events() if event["event"] == "result_ready"]

    def events(self, folder: Path | None = None) -> list[dict[str, Any]]:
        """The events of a run folder's journal, by default of the newest; empty before the first session."""
        if not any(self.runs.glob("*/")):
            return []
        journal = (folder or self.run_folder()) / "journal.ndjson"
        return [json.loads(line) for line in journal.read_text().splitlines()]

    def front(self) -> int:
        """The process that hears its clients, which it starts first."""
        return next(_descendants(self.process.pid))

    def engine(self) -> int:
        """The process of its engine that sends frames."""
        (found,) = [pid for pid in _descendants(self.process.pid) if _name(pid).startswith("nicbench-packet")]
        return found


@contextmanager
def serving(
    folder: Path,
    *options: str,
    lab: str = SIMULATED,
    text: str | None = None,
    inside: tuple[str, ...] = (),
    ends: int = 0,
) -> Iterator[Served]:
    """Serves a bench file, or one of a simulated lab, until the test ends; the command must end so, well by default.

    ``inside``: the beginning of a command line that runs it elsewhere, such as in a network namespace.
    """
    bench = folder / "bench.yaml"
    bench.write_text(text or BENCH.format(lab=lab))
    ports = ("--port", "0", "--http-port", "0", "--grpc-port", "0")
    command = (
        *inside,
        sys.executable,
        "-m",
        "nicbench",
        "serve",
        str(bench),
        "--runs",
        str(folder / "runs"),
        *ports,
        *options,
    )
    with (folder / "stderr").open("w+") as said:
        process = subprocess.Popen(command, stderr=said, text=True)
        try:
            found = wait_until(lambda: _ADDRESSES.search(_text(folder)) or process.poll() is not None, 120.0)
            assert isinstance(found, re.Match), _text(folder)
            yield Served(found[1], found[2], found[3], folder / "runs", process)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=120) == ends, _text(folder)


def _descendants(pid: int) -> Iterator[int]:
    with contextlib.suppress(FileNotFoundError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                yield child
                yield from _descendants(child)


def _name(pid: int) -> str:
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/comm").read_text()
    return ""


def _text(folder: Path) -> str:
    return (folder / "stderr").read_text()


def wait_until(holds: Callable[[], Any], within_s: float = 60.0) -> Any:
    """The value of ``holds`` once it is true."""
    end = time.monotonic() + within_s
    while not (found := holds()):
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)
    return found


def configured(api: Any, ports: tuple[str, ...] = ("t0", "t1"), *, captured: bool = True) -> Any:
    """A configuration with ports p1, p2, ... at these locations, all of which are captured."""
    config = api.config()
    for number, location in enumerate(ports, start=1):
        config.ports.add(name=f"p{number}", location=location)
    if captured:
        config.captures.add(name="ca", port_names=[port.name for port in config.ports])
    return config


def add_flow(config: Any, name: str, *, frames: int = 20, size: int = 128, metrics: bool = True) -> Any:
    """A flow from p1 to p2 of this many frames, whose packet is the caller's to add."""
    flow = config.flows.add(name=name)
    flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = "p1", ["p2"]
    flow.size.fixed, flow.rate.pps = size, 1000
    flow.duration.fixed_packets.packets = frames
    flow.metrics.enable = metrics
    return flow


def configured_endlessly(api: Any) -> Any:
    """Returns a configuration of the flow "f", which sends until it is stopped."""
    config = configured(api, captured=False)
    flow = add_flow(config, "f")
    flow.duration.choice = "continuous"
    ethernet, _, _ = flow.packet.ethernet().ipv4().udp()
    # A bridge drops what comes from the address of zeros.
    ethernet.src.value, ethernet.dst.value = "02:00:00:00:00:01", "02:00:00:00:00:02"
    return config


def transmit(api: Any, state: str, *names: str) -> None:
    """Starts, stops, pauses or resumes flows."""
    control = api.control_state()
    control.traffic.flow_transmit.state = state
    control.traffic.flow_transmit.flow_names = list(names)
    api.set_control_state(control)


def capture(api: Any, state: str) -> None:
    """Starts or stops the captures of all ports."""
    control = api.control_state()
    control.port.capture.state = state
    api.set_control_state(control)


def flow_metrics(api: Any, *names: str) -> dict[str, Any]:
    """Metrics of flows by name."""
    request = api.metrics_request()
    request.flow.flow_names = list(names)
    return {metric.name: metric for metric in api.get_metrics(request).flow_metrics}


def port_metrics(api: Any) -> dict[str, Any]:
    """Metrics of ports by name."""
    request = api.metrics_request()
    request.port.port_names = []
    return {metric.name: metric for metric in api.get_metrics(request).port_metrics}


def wait_for_stop(api: Any) -> dict[str, Any]:
    """Metrics of the flows as soon as all have stopped."""

    def stopped() -> Any:
        metrics = flow_metrics(api)
        return metrics if all(metric.transmit == "stopped" for metric in metrics.values()) else None

    return dict(wait_until(stopped))


def captured_frames(api: Any, port: str) -> list[bytes]:
    """The frames that a port captured, with FCS."""
    request = api.capture_request()
    request.port_name = port
    return [bytes(frame) for frame, _ in RawPcapReader(io.BytesIO(api.get_capture(request).read()))]
