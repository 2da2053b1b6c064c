"""A whole configuration after it was read: what the engine loads, and what session and metrics need."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from nicbench.core.units import format_bits_per_s, l1_bits_per_s
from nicbench.otg.captures import Capture, read_captures
from nicbench.otg.checks import check_configuration, resolve_ports
from nicbench.otg.flows import Flow, read_flow
from nicbench.otg.ports import ServedPort
from nicbench.otg.refusals import Problems

_ABOVE: Final = 1.001
_MOST_WARNINGS: Final = 10
"""Of one kind: thousands of flows may all be alike."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """``ports`` by their names in the configuration; ``warnings`` are told to the client."""

    ports: Mapping[str, ServedPort]
    flows: tuple[Flow, ...]
    captures: Mapping[str, Capture]
    warnings: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it ends a session."""
        return not self.ports


EMPTY: Final = Configuration({}, (), {})


def read_configuration(config: Mapping[str, Any], served: Mapping[str, ServedPort], seed: int) -> Configuration:
    """Reads a configuration that conforms to the model. OtgError with every problem that it has."""
    problems = Problems()
    check_configuration(config, served, problems)
    problems.raise_any()
    ports = resolve_ports(config, served)
    captures = read_captures(config, problems)
    flows = tuple(
        read_flow(flow, seed + index, ports, f"config.flows[{index}]", problems)
        for index, flow in enumerate(config.get("flows") or ())
    )
    _tell_apart(flows, problems)
    problems.raise_any()
    return Configuration(
        ports, flows, captures, (*_warn(config), *islice(_warn_of_rates(flows, ports), _MOST_WARNINGS))
    )


def _warn_of_rates(flows: Sequence[Flow], ports: Mapping[str, ServedPort]) -> Iterator[str]:
    """Yields a warning for each flow that asks for more than its link carries; bursts are sent at the link's rate."""
    for index, flow in enumerate(flows):
        asked = l1_bits_per_s(flow.program["rate_frames_per_s"], flow.mean_frame_bytes)
        link = ports[flow.transmit].link_bits_per_s
        if link is not None and flow.program["burst"] is None and asked > _ABOVE * link:
            told = f"{format_bits_per_s(asked)} are asked for, and its port's link carries {format_bits_per_s(link)}"
            yield f"config.flows[{index}].rate: {told}: frames will be late or unsent"


def _warn(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns a warning for each setting that has no effect: links stay as they are."""
    warnings = []
    for index, layer in enumerate(config.get("layer1") or ()):
        keys = sorted(set(layer) - {"name", "port_names"})
        if keys:
            warnings.append(f"config.layer1[{index}]: links stay as they are: {', '.join(keys)} are not set")
    return tuple(warnings)


def _tell_apart(flows: Sequence[Flow], problems: Problems) -> None:
    """Reports flows that are counted by their headers and differ neither in these nor in their frame sizes."""
    alike: dict[str, list[int]] = {}
    for index, flow in enumerate(flows):
        if flow.counted == "headers":
            for port in flow.receive:
                alike.setdefault(f"{port}: {json.dumps(flow.program['match']['fields'])}", []).append(index)
    for indices in alike.values():
        if len(indices) == 1:
            continue
        sizes = [flows[index].program["sizes"].get("fixed") for index in indices]
        for index, size in zip(indices, sizes, strict=True):
            if size is None or sizes.count(size) > 1:
                problems.invalid(
                    f"config.flows[{index}]",
                    "is counted by its headers, for its frames have no room for a signature, and another flow has the "
                    "same: send larger frames, or other ports or addresses",
                )
            flows[index].program["match"]["bytes"] = [size]
