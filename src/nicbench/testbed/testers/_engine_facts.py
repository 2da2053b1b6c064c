"""What our engine is configured with for a run, and what the plan says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nicbench.core.traffic import Traffic
from nicbench.testbed.testers.base import TesterFacts

# What is said of DPDK alone: of the engine, of a port, and of the options.
_DPDK_ENGINE = frozenset({"dpdk", "drivers"})
_DPDK_PORT = frozenset({"transmit_descriptors", "receive_descriptors", "send_buffer_bytes", "lossless"})
_DPDK_OPTIONS = frozenset({"eal_arguments", "timestamps"})


@dataclass(frozen=True, slots=True)
class Recording:
    """Files that trials write beside their readings, into ``folder`` on the engine's host."""

    folder: Path
    capture: dict[str, int] | None = None
    per_flow: str | None = None


@dataclass(frozen=True, slots=True)
class PacketsOptions:
    """The parameters of the protocol's ``configure`` and ``start`` that are the same for a whole run."""

    run_key: int
    ports: tuple[dict[str, Any], ...]
    worker_cpu: int | None
    watch_cpus: tuple[int, ...]
    virtual_clock: bool
    huge_pages: bool
    memory_mib: int
    burst: int
    catch_up_s: float
    latency_from: str
    timestamps: str
    traffic: Traffic
    reordering_n: int = 3
    eal: tuple[str, ...] = ()
    recording: Recording | None = None
    workers: tuple[dict[str, Any], ...] = ()
    """The workers as in the protocol's `configure`; without any a single one on ``worker_cpu`` does everything."""
    generates: bool = False
    """Whether flows begin and end on their own; what ports receive may then be captured at any time."""
    fault: dict[str, float] | None = None
    """For tests only: a fault of the tester itself, e.g. a pause of its receiver (protocol: ``start``)."""


def facts_of(
    options: PacketsOptions, binary: str, hello: Mapping[str, Any], configured: Mapping[str, Any]
) -> TesterFacts:
    """What the engine's replies to ``hello`` and ``configure`` say, for the report and for the bounds of trials.

    Of ports in the kernel nothing is said that is DPDK's, which is not started.
    """
    ports = [_without_clock(_without_early_link(port)) for port in configured["ports"]]
    speeds = [port["link_bits_per_s"] for port in ports if port.get("link_bits_per_s")]
    engine = {key: value for key, value in hello.items() if key not in ("id", "ok")}
    told = {
        "engine": engine,
        "ports": list(ports),
        "clock": configured.get("clock"),
        "eal_arguments": configured.get("eal_arguments"),
        "command": [binary],
        "workers": list(options.workers),
        "burst": options.burst,
        "catch_up_s": options.catch_up_s,
        "latency_from": options.latency_from,
        "timestamps": options.timestamps,
    }
    if all(port["kind"] == "xdp" for port in options.ports):
        told["engine"] = {key: value for key, value in engine.items() if key not in _DPDK_ENGINE}
        told["ports"] = [{key: port[key] for key in port if key not in _DPDK_PORT} for port in ports]
        told = {key: value for key, value in told.items() if key not in _DPDK_OPTIONS}
    return TesterFacts(
        description=told,
        minimum_frame_bytes=max(port["min_frame_bytes"] for port in ports),
        maximum_frame_bytes=min(port["max_frame_bytes"] for port in ports),
        link_bits_per_s=min(speeds) if speeds else None,
        tag_bytes=min(port.get("tag_bytes", 0) for port in ports),
    )


def _without_early_link(port: dict[str, Any]) -> dict[str, Any]:
    """The port with an unknown link state where it is a memif that is down: it connects a moment after the reply."""
    return {**port, "link_up": None} if port.get("driver") == "net_memif" and not port.get("link_up") else port


def _without_clock(port: dict[str, Any]) -> dict[str, Any]:
    """The port without the key ``timestamps`` where its value is None, as with stamps of the time-stamp counter."""
    return {name: value for name, value in port.items() if name != "timestamps" or value is not None}
