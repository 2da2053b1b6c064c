"""Proofs without ports: how counters are judged, how a proof is kept and ages, and what runs and doctor say of it."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import jsonschema
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from nicbench.core.errors import NotReadyError, UsageError
from nicbench.core.machine import PortQueues, QueueReading
from nicbench.core.proof import Finding, Outcome, Proof, ProvenPort
from nicbench.core.redaction import Redactor
from nicbench.core.trial import Reading
from nicbench.doctor.checks.adapters import judge_proof
from nicbench.prove.abilities.clocks import judge_clock
from nicbench.prove.abilities.counts import judge_bytes, judge_count
from nicbench.prove.abilities.frames import is_udp_checksum_right, pass_all
from nicbench.prove.abilities.settings import judge_spread, judge_sum
from nicbench.prove.loop import Sent, Session
from nicbench.prove.page import write_page
from nicbench.prove.proving import abilities, choose
from nicbench.stages import testbed as of_runs
from nicbench.store.proofs import find_proof, save_proof
from nicbench.system.identity import port_of
from nicbench.testbed.labs.base import Testbed, TesterPort

PORT = ProvenPort(device="e0", driver="igb", driver_version="6.1", firmware="1.0", fingerprint="0123456789abcdef")
ROOT = Path(__file__).parents[2]
KERNEL = "6.1.0-21-amd64"


def proof(*findings: Finding, port: ProvenPort = PORT, made_at: str = "2026-11-30T10:00:00+00:00") -> Proof:
    """A proof of one port with a loop plug."""
    return Proof(
        nicbench="0.1.0", kernel=KERNEL, made_at=made_at, took_s=1.0, loop="plug", ports=(port,), findings=findings
    )


def finding(name: str, outcome: Outcome) -> Finding:
    """A finding with some words."""
    return Finding(name=name, outcome=outcome, seen="12 of 4,000 frames were lost")


@pytest.mark.parametrize(
    ("kernel", "own", "outcome"),
    [
        ((100, 200), (100, 200), Outcome.PROVEN),
        ((0, 0), (100, 200), Outcome.PROVEN),  # the kernel's counter leaves frames of XDP out
        ((0, 0), (100, 199), Outcome.ABSENT),
        ((200, 400), (100, 200), Outcome.FAILED),
        ((100, 199), (100, 200), Outcome.FAILED),
    ],
)
def test_a_counter_is_right_to_the_frame_or_it_counts_nothing(
    kernel: tuple[int, int], own: tuple[int, int], outcome: Outcome
) -> None:
    rose = tuple({"link: rx packets": one, "rx_good": other} for one, other in zip(kernel, own, strict=True))
    assert judge_count("counts.received", "link: rx packets", rose, (100, 200)).outcome is outcome


@pytest.mark.parametrize(
    ("counted", "outcome"),
    [
        ((128, 1024), Outcome.PROVEN),
        ((124, 1020), Outcome.PROVEN),  # without the FCS
        ((0, 0), Outcome.ABSENT),
        ((128, 1032), Outcome.FAILED),
    ],
)
def test_a_counter_of_bytes_grows_with_the_frame(counted: tuple[int, int], outcome: Outcome) -> None:
    rose = tuple({"link: rx bytes": each * 10} for each in counted)
    assert judge_bytes("counts.bytes", "link: rx bytes", rose, (10, 10)).outcome is outcome


def clock(ppm: float = 20.0, step_ns: float = 0.0, outlier_ns: float = 0.0) -> list[tuple[float, float]]:
    """Readings of a card's clock beside the system's, 0.26 s apart, with some noise."""
    draws = random.Random(7)
    times = [0.26 * number for number in range(24)]
    return [
        (at, 1e3 * ppm * at + draws.gauss(0, 60) + step_ns * (number > 10) + outlier_ns * (number == 5))
        for number, at in enumerate(times)
    ]


@pytest.mark.parametrize(
    ("readings", "outcome"),
    [
        (clock(), Outcome.PROVEN),
        (clock(outlier_ns=50_000), Outcome.PROVEN),  # one late reading is no step
        (clock(ppm=200), Outcome.FAILED),
        (clock(step_ns=-1000), Outcome.FAILED),
    ],
)
def test_a_clock_that_drifts_or_steps_is_found(readings: list[tuple[float, float]], outcome: Outcome) -> None:
    assert judge_clock("clocks.ptp_first", readings).outcome is outcome


@pytest.mark.parametrize(
    ("frames", "expected", "in_sum", "in_spread"),
    [
        ((6, 4), (6, 4), Outcome.PROVEN, Outcome.PROVEN),
        ((4, 6), (6, 4), Outcome.PROVEN, Outcome.FAILED),  # two queues are swapped
        ((6, 5), (6, 4), Outcome.FAILED, Outcome.FAILED),
        ((6, 4), None, Outcome.PROVEN, Outcome.ABSENT),
    ],
)
def test_each_queue_has_the_frames_of_its_flows(
    frames: tuple[int, ...], expected: tuple[int, ...] | None, in_sum: Outcome, in_spread: Outcome
) -> None:
    port = PortQueues(
        side="tester", port=1, device="e1", driver="igb", source="ethtool -S", frames=frames, expected=expected
    )
    stream = SimpleNamespace(name="0->1", counts=SimpleNamespace(received=10))
    reading = cast(Reading, SimpleNamespace(queues=QueueReading(ports=(port,)), streams=(stream,)))
    assert judge_sum("queues.sum", reading).outcome is in_sum
    assert judge_spread("queues.hash", reading).outcome is in_spread


class _Slow:
    """A session at its slowest pace: how many frames each transmission loses, and how many a counter has of them."""

    rate_frames_per_s = 300.0

    def __init__(self, losses: list[tuple[int, int]], counter: str) -> None:
        self._losses, self._counter = iter(losses), counter

    def slow_down(self) -> bool:
        return False

    async def send(self, *args: Any, **options: Any) -> Sent:
        lost, counted = next(self._losses)
        counts = {"sent": 4_000, "lost": lost, "corrupted": 0, "corrupted_unattributed": 0, "duplicated": 0}
        rest = {"reordered": 0, "misdirected": 0, "late": 0}
        reading = SimpleNamespace(counts=SimpleNamespace(**counts, **rest), ports=())
        return Sent(cast(Reading, reading), ({self._counter: 0}, {self._counter: counted}))


@pytest.mark.parametrize(
    ("losses", "counter", "damage"),
    [
        ([(3, 3), (0, 0)], "rx_missed_errors", None),  # the machine did not take them in time, once
        ([(3, 3), (2, 2), (1, 1)], "rx_missed_errors", "frames of 64 bytes: 1 lost of 4,000"),
        ([(3, 1)], "rx_missed_errors", "frames of 64 bytes: 3 lost of 4,000"),
        ([(3, 0)], "rx_missed_errors", "frames of 64 bytes: 3 lost of 4,000"),
        ([(3, 3)], "rx_crc_errors", "frames of 64 bytes: 3 lost of 4,000"),  # a bad cable, not a busy machine
    ],
)
def test_a_loss_is_repeated_only_where_nobody_took_the_frames(
    losses: list[tuple[int, int]], counter: str, damage: str | None
) -> None:
    assert asyncio.run(pass_all(cast(Session, _Slow(losses, counter)), (64,))) == damage


@pytest.mark.parametrize("length", [18, 19])
def test_a_wrong_udp_checksum_is_seen(length: int) -> None:
    frame = bytes(Ether() / IP(src="198.18.0.1", dst="198.19.0.1") / UDP(sport=7, dport=9) / bytes(range(length)))
    assert is_udp_checksum_right(frame)
    assert not is_udp_checksum_right(frame[:41] + bytes([frame[41] ^ 1]) + frame[42:])


def test_the_newest_proof_of_a_port_is_found_again(tmp_path: Path) -> None:
    other = PORT.replace(fingerprint="ffffffffffffffff")
    for each in (proof(port=other), proof(), proof(made_at="2026-12-01T10:00:00+00:00")):
        save_proof(each, tmp_path)
    found = find_proof(PORT.fingerprint, tmp_path)
    assert found is not None
    assert found.made_at.startswith("2026-12-01")
    (tmp_path / f"{PORT.fingerprint}.json").write_text("{")
    assert find_proof(PORT.fingerprint, tmp_path) is None


@pytest.mark.parametrize(
    ("now", "kernel", "words"),
    [
        (PORT, KERNEL, "1 things proven"),
        (PORT.replace(firmware="1.1"), KERNEL, "firmware 1.1 instead of 1.0"),
        (PORT, "6.2.0", "kernel 6.2.0"),
    ],
)
def test_a_proof_ages_with_what_it_was_made_of(now: ProvenPort, kernel: str, words: str) -> None:
    check = judge_proof(now, proof(finding("drivers.xdp", Outcome.PROVEN)), kernel)
    assert words in check.text
    assert (check.mend_command is None) is (words == "1 things proven")


def test_an_address_is_in_no_proof() -> None:
    told = {
        "driver": "driver: igb\nversion: 6.1\nbus-info: 0000:03:00.0",
        "machine": "abc",
        "card": "0x8086 0x1521 0x8086 0x1",
    }
    port = port_of("e0", "aa:bb:cc:dd:ee:ff", told)
    assert port.card == "8086:1521 8086:1"
    assert "aa:bb:cc" not in port.model_dump_json()
    assert port.fingerprint != port_of("e0", "aa:bb:cc:dd:ee:fe", told).fingerprint


class _Host:
    """A host that says which kernel it has."""

    name = "tester"

    async def read_file(self, path: str) -> str:
        return KERNEL


def statements(found: Proof | None, monkeypatch: pytest.MonkeyPatch, kind: str = "xdp") -> tuple[str, ...]:
    """What a run on the port says, with this proof."""

    async def identify(host: Any, device: str) -> ProvenPort:
        return PORT

    monkeypatch.setattr(of_runs, "identify_port", identify)
    monkeypatch.setattr(of_runs, "find_proof", lambda fingerprint, folder: found)
    port = TesterPort(name="t0", engine={"kind": kind}, device="e0")
    testbed = SimpleNamespace(tester_ports=(port,), host_of=lambda each: _Host())
    held = asyncio.run(of_runs.hold_against_proofs(cast(Testbed, testbed)))
    assert held.proofs == (() if found is None else (found,))
    return held.unproven


def test_a_run_on_a_driver_that_failed_is_refused_with_what_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = proof(finding("drivers.xdp", Outcome.FAILED), finding("drivers.net_af_xdp", Outcome.PROVEN))
    with pytest.raises(NotReadyError, match="12 of 4,000 frames were lost"):
        statements(bad, monkeypatch)
    assert statements(bad, monkeypatch, "af_xdp") == ()


def test_a_run_says_what_nobody_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "not proven" in statements(None, monkeypatch)[0]
    assert "not proven" in statements(proof(finding("drivers.xdp", Outcome.ABSENT)), monkeypatch)[0]
    old = proof(finding("drivers.xdp", Outcome.FAILED), port=PORT.replace(firmware="0.9"))
    assert "another driver, firmware or kernel" in statements(old, monkeypatch)[0]


def test_abilities_are_chosen_by_their_names() -> None:
    assert choose((), ()) == abilities()
    assert [each.kind for each in choose(("clocks",), ())] == ["drivers", "clocks"]
    assert "link" not in [each.kind for each in choose((), ("link",))]
    with pytest.raises(UsageError, match="clock"):
        choose(("clok",), ())


def test_the_page_has_every_finding() -> None:
    page = write_page(proof(finding("drivers.xdp", Outcome.FAILED), finding("counts.sent_xdp", Outcome.ABSENT)))
    for words in ("failed", "not there", "12 of 4,000 frames were lost", "1 failed"):
        assert words in page


def test_the_published_schema_is_current_and_the_published_proofs_fit_it() -> None:
    published = (ROOT / "docs" / "proof.schema.json").read_text(encoding="utf-8")
    assert published == Proof.schema_text(), "to be made anew by `python -m nicbench.core.proof`"
    kept = sorted((ROOT / "proofs").glob("*.json"))
    assert kept
    for path in kept:
        text = path.read_text(encoding="utf-8")
        jsonschema.validate(json.loads(text), json.loads(published))
        assert Redactor.of_this_machine().redact_text(text) == text, "an address, or this machine's name"
        assert Proof.model_validate_json(path.read_bytes()).of("restored.settings") is not None
