"""What a plan discloses, prepared for display: each option once, choices in words, no directories of the machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from nicbench.core.plan import Plan

_HIDDEN = ("--runs", "--output", "-o")  # where a run was put says nothing of what was measured


_MEASURED = frozenset({"clock", "eal_arguments"})
"""Properties of the tester that differ each time it starts."""


_ENDPOINTS = "endpoints"


def shares_cores(plan: Plan) -> bool:
    """Returns whether tester and DUT share a CPU, or have hyperthreads of one physical core."""
    return bool(plan.cores.get("shared") or plan.cores.get("halved_cores"))


def of_configurations(plan: Plan, *parts: str) -> tuple[tuple[str, Plan], ...]:
    """Returns one plan for each distinct content of ``parts``, with the names of its configurations; "" where all plans
    are alike.
    """
    found: list[tuple[list[str], Plan]] = []
    for each in plan.each:
        names = next((names for names, other in found if _content(other, parts) == _content(each, parts)), None)
        if names is None:
            found.append(([each.configuration], each))
        else:
            names.append(each.configuration)
    return tuple(("" if len(found) == 1 else ", ".join(names), each) for names, each in found)


def _content(plan: Plan, parts: Sequence[str]) -> list[Any]:
    found = [getattr(plan, part) for part in parts]
    return [_settings(each) if isinstance(each, dict) else each for each in found]


def _settings(content: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name not in _MEASURED}


def lab(plan: Plan) -> dict[str, Any]:
    """Returns options and facts of the lab in one mapping; a fact that repeats an option is left out."""
    options = dict(plan.lab or {})
    facts = {name: value for name, value in plan.facts.items() if not (name == "lab" and value == options.get("kind"))}
    if _ENDPOINTS in facts:  # the testbed has a table of its own
        facts = {name: value for name, value in facts.items() if name not in (_ENDPOINTS, "links", "namespaces")}
    return in_bits({**options, **facts}) if _ENDPOINTS in plan.facts else {**options, **facts}


def in_bits(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options of workloads with names that carry their units: rates in bits per second,
    windows in bytes.
    """
    names = {"rate": "rate_bits_per_s", "window": "window_bytes"}
    return {names.get(name, name): value for name, value in options.items()}


XDP: Final = "xdp"
"""The driver of a tester whose frames programs in the kernel make and judge."""

_DPDK_OPTIONS: Final = frozenset(
    {"huge_pages", "memory", "transmit_descriptors", "receive_descriptors", "send_buffer", "timestamps"}
)


def tester(plan: Plan) -> dict[str, Any]:
    """Returns what is disclosed of the tester: a program by its name without the path; a worker CPU that nobody
    asked for as the one that was chosen, and such a driver with the reason.
    """
    shown = dict(plan.tester)
    command = shown.get("command")
    if isinstance(command, list | tuple) and command:
        shown["command"] = [PurePath(str(command[0])).name, *command[1:]]
    options = shown.get("options")
    if isinstance(options, Mapping):
        repeated = [name for name, value in shown.items() if options.get(name.removesuffix("_s"), shown) == value]
        shown = {name: value for name, value in shown.items() if name not in repeated}
    worker = plan.cores.get("worker")
    if isinstance(options, Mapping) and "worker_cpu" in options and options["worker_cpu"] is None:
        chosen = "chosen" if worker is None else f"chosen: CPU {worker}"
        shown["options"] = {**options, "worker_cpu": chosen}
    because = shown.pop("driver_because", None)
    if isinstance(shown.get("options"), Mapping):
        shown["options"] = asked_options(_of_driver(shown["options"], because))
    return shown


def _of_driver(options: Mapping[str, Any], because: object) -> dict[str, Any]:
    """Returns options with the driver that the run chose and why; programs in the kernel have no use of DPDK's."""
    driver = options.get("driver")
    known = {name: value for name, value in options.items() if driver != XDP or name not in _DPDK_OPTIONS}
    return known if because is None else {**known, "driver": f"chosen: {driver} ({because})"}


def asked_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns options as they were asked for; an option that was not given is "not asked for" rather than unknown."""
    return {
        name: "not asked for" if value is None else asked_options(value) if isinstance(value, Mapping) else value
        for name, value in options.items()
    }


def command(plan: Plan) -> tuple[str, ...]:
    """Returns the command as it can be repeated on another machine: the name of the program, without the place of its
    output.
    """
    shown: list[str] = []
    words = iter(plan.command)
    for word in words:
        if word in _HIDDEN:
            next(words, None)
        elif not word.startswith(("--runs=", "--output=")):
            shown.append(word if shown else PurePath(word).name)
    return tuple(shown)


def threshold_why(why: str, gap_floor_ns: int | None) -> str:
    """Returns the reason for a threshold, with the gap floor written as a time."""
    if gap_floor_ns is None:
        return why
    return why.replace("over the gap floor", f"longer than {gap_floor_ns / 1e6:g} ms")


def cpu_mask(mask: str) -> str:
    """Returns a CPU mask of the kernel, hexadecimal in groups of eight digits, with its CPUs: "mask 2 (CPU 1)"."""
    try:
        bits = int(mask.replace(",", ""), 16)
    except ValueError:
        return mask
    cpus = [str(cpu) for cpu in range(bits.bit_length()) if bits >> cpu & 1]
    named = f"CPU{'s' if len(cpus) > 1 else ''} {', '.join(cpus)}" if cpus else "off"
    return f"mask {mask} ({named})"
