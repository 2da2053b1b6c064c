"""Sessions of a traffic generator: a seed draws flows, which a client configures, starts, stops and reads counts of."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any
from unittest import mock

from nicbench.bench_file import load
from nicbench.otg.sessions import Sessions
from nicbench.store.folder import RunFolder


async def serve(seed: int, bench: str, runs: Path, told: list[dict[str, Any]]) -> RunFolder:
    """Plays one session in a new run folder; ``told`` gets the metrics of each transmission when it has ended."""
    draw, path = random.Random(f"serve/{seed}"), runs / f"bench-{seed}.yaml"
    path.write_text(bench)
    with mock.patch("nicbench.otg.sessions.build"):  # a report takes longer than the session
        sessions = Sessions(load(path, serves=True), runs, lambda _: None, idle_s=60.0)
        session = await sessions.begin()
        try:
            for _ in range(draw.randint(1, 4)):
                await session.set_config(_draw_configuration(draw))
                await session.control_flows("start", ())
                if draw.random() < 0.3:
                    await asyncio.sleep(draw.uniform(0.0, 0.1))
                    await session.control_flows(draw.choice(("stop", "pause")), ())
                    await session.control_flows("stop", ())
                while session.is_transmitting:
                    await asyncio.sleep(0.02)
                    await session.flow_metrics((), ())
                told.append({each["name"]: each for each in await session.flow_metrics((), ())})
        finally:
            await sessions.end()
    assert sessions.folder is not None
    return sessions.folder


def _draw_configuration(draw: random.Random) -> dict[str, Any]:
    ports = [{"name": f"p{number}", "location": f"t{number}"} for number in (0, 1)]
    return {"ports": ports, "flows": [_draw_flow(draw, f"f{number}") for number in range(draw.randint(1, 5))]}


def _draw_flow(draw: random.Random, name: str) -> dict[str, Any]:
    ways = draw.choice((("p0", "p1"), ("p1", "p0")))
    packets = {"choice": "fixed_packets", "fixed_packets": {"packets": draw.randint(1, 300)}}
    seconds = {"choice": "fixed_seconds", "fixed_seconds": {"seconds": draw.uniform(0.01, 0.2)}}
    return {
        "name": name,
        "tx_rx": {"choice": "port", "port": {"tx_name": ways[0], "rx_names": [ways[1]]}},
        "packet": [],
        "size": {"choice": "fixed", "fixed": draw.choice((64, 128, 512, 1518))},
        "rate": {"choice": "pps", "pps": draw.randint(10, 2000)},
        "duration": draw.choice((packets, seconds)),
        "metrics": {"enable": draw.random() < 0.8},
    }
