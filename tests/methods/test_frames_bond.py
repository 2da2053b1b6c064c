"""Frames over a bond: which instance used which port, so that a halved rate is explained."""

from __future__ import annotations

import asyncio

from nicbench.core.bond import Bond, BondObservation, BondPort, Connection, PortBytes
from nicbench.core.result import Result
from nicbench.core.round import Figures, FrameFigures, Job, JobOutcome, RoundRequest
from nicbench.methods.frames import Frames
from nicbench.stats.bonds import judge_bond

from .round_contexts import Laboratory, fast_laboratory

FRAME_BYTES = 51_052_544
SECONDS = 20.0
# Each instance's mount has its own port of the client; from 10.0.0.1:2049 they hash to eth2 or eth3 (test_bonds.py).
CLIENT_PORTS = {1: 0x0300, 2: 0x0302, 3: 0x0702}
RATES = {1: 24.0, 2: 11.9, 3: 12.1}


def saw(number: int, job: Job) -> JobOutcome:
    rate = RATES[int(str(job.label).removeprefix("instance "))]
    frames = round(rate * SECONDS)
    figures = FrameFigures(
        engine="io_uring",
        measured_ns=round(SECONDS * 1e9),
        frames=frames,
        bytes=frames * FRAME_BYTES,
        frames_per_s=rate,
        bytes_per_s=rate * FRAME_BYTES,
        dropped_frames=480 - frames,
        due_frames=480,
    )
    return JobOutcome(figures=Figures(frames=figures), began_s=0.0, took_s=SECONDS)


def seen_by_the_server(request: RoundRequest) -> tuple[BondObservation, ...]:
    """What left the server until the midst of a round in which it was read from."""
    bond = Bond(
        name="bond0",
        mode="802.3ad",
        policy="layer3+4",
        ports=tuple(BondPort(name=name, usable=True, speed_bits_per_s=10e9) for name in ("eth2", "eth3")),
        kernel="6.1.0",
    )
    moved = {number: round(RATES[number] * SECONDS / 2) * FRAME_BYTES for number in CLIENT_PORTS}
    flows = [
        (
            (number,),
            Connection(
                source="10.0.0.1",
                source_port=2049,
                destination="10.0.0.2",
                destination_port=port,
                sent_bytes=moved[number],
                received_bytes=moved[number] // 1000,
            ),
        )
        for number, port in CLIENT_PORTS.items()
    ]
    ports = {
        name: PortBytes(sent=2 * sent, received=5000, sent_until_midst=sent)
        for name, sent in (("eth2", moved[1]), ("eth3", moved[2] + moved[3]))
    }
    return (judge_bond("s00", bond, flows, ports),)


def studied(laboratory: Laboratory) -> list[Result]:
    options = {"directories": "/mnt/d{instance}", "direction": ["read"], "instances": [3], "pause": 0}
    method = Frames("editors", Frames.Options.model_validate(options))
    return list(asyncio.run(method.run(laboratory.context)))


def test_instances_that_shared_a_port_are_named_with_what_each_had() -> None:
    laboratory = fast_laboratory(saw)
    laboratory.player.bonded = seen_by_the_server
    whole, *instances = studied(laboratory)
    assert whole.values["bond"] == (
        "bond0 of s00 (802.3ad, layer3+4): instance 1 had eth2 (10 Gb/s) to itself: 24.0 frames/s; "
        "instances 2 and 3 shared eth3 (10 Gb/s): 11.9 and 12.1 frames/s. "
        "3 connections hashed to 2 ports are spread evenly in 75 % of all cases"
    )
    assert [one.values["bond_port"] for one in instances] == ["eth2", "eth3", "eth3"]


def test_without_a_bond_there_is_no_value_of_one() -> None:
    whole, *instances = studied(fast_laboratory(saw))
    assert "bond" not in whole.values
    assert not any("bond_port" in one.values for one in instances)
