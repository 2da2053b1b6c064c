"""Pause frames before a computed switch: its pauses, its watchdog and its head room are found, and its faults named."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicbench.core.headers import Pausing, pause_seconds
from nicbench.core.judging import Verdict
from nicbench.core.reading import Arrivals, Counts, Silence
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.trial import Reading, StreamReading, Trial, TrialRequest
from nicbench.methods.head_room import HeadRoom
from nicbench.methods.pauses import Observed, PauseReaction, PauseStorm

from .known import HELD_UP, KnownContext, reading_of, run

LINK = 1e8
FRAME_BYTES = 500


@dataclass(frozen=True)
class Switch:
    """What is known of it; times in seconds, sizes in bytes."""

    obeys: bool = True
    forwards_pauses: bool = False
    xoff: int = 20_000
    head_room: int = 10_000
    late: int = 0  # by so much it pauses its neighbour later than it should
    detect_s: float | None = None
    restore_s: float = 0.2
    drops: bool = True
    unsent: int = 0  # frames that the tester itself does not send


class Behind(KnownContext):
    """Trials with pause frames before the switch; frames are exactly spaced."""

    def __init__(self, switch: Switch) -> None:
        super().__init__()
        self.switch = switch

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        pausing, rate = request.pausing, request.load_frames_per_s
        assert pausing is not None
        assert rate is not None
        frames = request.frames or int(rate * request.duration_s)
        times = [pausing.load_begins_s + number / rate for number in range(frames)]
        first, last = pausing.trains[0], pausing.trains[-1]
        held_until = last.ends_s + pause_seconds(last.quanta, LINK)
        xoff_at = None
        let_go_at = None
        arrived, lost, waiting, offered = list[float](), 0, 0, 0
        room = self.switch.xoff + self.switch.head_room
        for at in times:
            resumes_at, drops_from = self._watched(first.begins_s, first.ends_s, held_until)
            if not self.switch.obeys or not first.begins_s <= at < resumes_at:
                arrived.append(at)
                continue
            if drops_from is not None and at >= drops_from:
                lost += 1
                continue
            offered += 1
            if offered * FRAME_BYTES > self.switch.xoff + self.switch.late and self.switch.head_room:
                xoff_at = xoff_at or at
            if (waiting + 1) * FRAME_BYTES > room:
                lost += 1
            else:
                waiting += 1
        if drops_from is not None and waiting:
            lost, waiting, let_go_at = lost + waiting, 0, drops_from
        arrived = sorted([*arrived, *[resumes_at] * waiting])
        return self._reading(request, frames, lost, arrived, (xoff_at, let_go_at), pausing)

    def _watched(self, begins_s: float, ends_s: float, held_until: float) -> tuple[float, float | None]:
        """When frames leave again, and from when they are dropped."""
        detect_s = self.switch.detect_s
        if detect_s is None or begins_s + detect_s > held_until:
            return held_until, None
        if self.switch.drops:
            return max(held_until, ends_s + self.switch.restore_s), begins_s + detect_s
        return begins_s + detect_s, None

    def _reading(
        self, request: TrialRequest, frames: int, lost: int, arrived: list[float],
        heard: tuple[float | None, float | None], pausing: Pausing,
    ) -> Reading:  # fmt: skip
        def of(name: str, sent: int, received: int, at: list[float]) -> StreamReading:
            gaps = [(late - early, early, late) for early, late in pairwise(at)]
            longest = max(gaps, default=None)
            silence = longest and Silence(from_ns=round(1e9 * longest[1]), to_ns=round(1e9 * longest[2]))
            times = Arrivals(first_ns=round(1e9 * at[0]), last_ns=round(1e9 * at[-1]), silence=silence) if at else None
            counts = Counts(intended=sent, sent=sent, received=received, lost=max(0, sent - received))
            return StreamReading(name=name, counts=counts, arrivals=times)

        xoff_at, let_go_at = heard
        trains = [
            of(f"1->0: pauses {number}", train.frames, train.frames if self.switch.forwards_pauses else 0, [])
            for number, train in enumerate(pausing.trains, start=1)
        ]
        beside = [
            *trains,
            of("1->0: hears end", 0, int(let_go_at is not None), [] if let_go_at is None else [let_go_at]),
            of("1->0: hears pause", 0, int(xoff_at is not None), [] if xoff_at is None else [xoff_at]),
        ]
        load = of("0->1", frames, frames - lost, arrived)
        counts = load.counts.replace(intended=frames + self.switch.unsent, unsent_tester=self.switch.unsent)
        return reading_of(request.duration_s, [load.replace(counts=counts)], beside=tuple(beside))


COMMON = {"frame_bytes": (FRAME_BYTES,), "link_rate": LINK}


async def reaction(switch: Switch, quanta: int) -> Result:
    options = PauseReaction.Options(quanta=(quanta,), rate=500.0, repetitions=2, tolerance=0.01, **COMMON)
    (result,) = await run(PauseReaction("reaction", options), Behind(switch))
    return result


async def storm(switch: Switch, **given: Any) -> Result:
    options = PauseStorm.Options(quanta=10_000, repetitions=2, storm=1.0, after=1.0, **COMMON, **given)
    (result,) = await run(PauseStorm("storm", options), Behind(switch))
    return result


async def head_room(switch: Switch, **given: Any) -> Result:
    options = HeadRoom.Options(most=200, loss_verification=0, **COMMON, **given)
    (result,) = await run(HeadRoom("room", options), Behind(switch))
    return result


def bounds(result: Result, name: str) -> Bounded:
    value = result.values[name]
    assert isinstance(value, Bounded)
    return value


@given(quanta=st.integers(5_000, 60_000))
async def test_a_pause_is_as_long_as_its_quanta(quanta: int) -> None:
    result = await reaction(Switch(xoff=200_000), quanta)
    paused, known = bounds(result, "paused_ns"), 1e9 * pause_seconds(quanta, LINK)
    assert paused.lower is not None
    assert paused.upper is not None
    assert paused.lower <= known + 1e3
    assert paused.upper >= known - 1e3
    assert (result.values["handling"], result.values["obeyed"]) == ("obeys", "2 of 2")


async def test_a_switch_that_does_not_obey_or_forwards_pauses_is_told() -> None:
    assert (await reaction(Switch(obeys=False), 40_000)).values["handling"] == "does not obey 2 of 2 pauses"
    forwards = await reaction(Switch(xoff=200_000, forwards_pauses=True), 40_000)
    assert forwards.values["handling"] == "forwards 2 pause frames"


async def test_frames_that_are_lost_while_it_is_paused_are_told() -> None:
    result = await reaction(Switch(xoff=5_000, head_room=1_000), 60_000)
    assert str(result.values["handling"]).startswith("loses")


@given(detect_s=st.floats(0.1, 0.8), restore_s=st.floats(0.1, 0.6))
async def test_a_watchdog_that_drops_has_both_its_times(detect_s: float, restore_s: float) -> None:
    result = await storm(Switch(detect_s=detect_s, restore_s=restore_s))
    detected, restored = bounds(result, "detected_ns"), bounds(result, "restored_ns")
    assert result.values["action"] == "drops"
    assert detected.upper == pytest.approx(1e9 * detect_s, abs=2e6)
    assert restored.lower is not None
    assert restored.upper is not None
    assert restored.lower - 1e6 <= 1e9 * restore_s <= restored.upper + 1e6


async def test_a_watchdog_that_forwards_is_seen_by_the_first_frame() -> None:
    result = await storm(Switch(detect_s=0.3, drops=False, xoff=400_000))
    assert (result.values["action"], result.values["lost_frames"]) == ("forwards", 0)
    assert bounds(result, "detected_ns").upper == pytest.approx(0.3e9, abs=2e6)
    assert bounds(result, "restored_ns").value is None


async def test_a_late_watchdog_and_none_at_all_are_told() -> None:
    late = await storm(Switch(detect_s=0.6), detects_within=0.5, restores_within=0.3)
    assert late.values["handling"] == "its watchdog needs more than 500 ms"
    none = await storm(Switch(xoff=2_000_000), detects_within=0.5)
    assert (none.values["action"], none.values["handling"]) == ("none", "no watchdog acted within 1 s")
    slow = await storm(Switch(detect_s=0.2, restore_s=0.6), restores_within=0.3)
    assert slow.values["handling"] == "it needs to forward again more than 300 ms"


@given(xoff=st.integers(1_000, 50_000), room=st.integers(1_000, 40_000))
async def test_head_room_lies_in_its_interval(xoff: int, room: int) -> None:
    found = bounds(await head_room(Switch(xoff=xoff, head_room=room)), "head_room_bytes")
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower <= room <= found.upper
    assert found.upper - found.lower == 2 * FRAME_BYTES


async def test_a_switch_that_drops_before_it_pauses_or_has_too_little_is_told() -> None:
    early = await head_room(Switch(late=12_000))
    assert early.values["handling"] == "drops before it pauses"
    little = await head_room(Switch(head_room=3_000), needs=8_000)
    assert little.values["handling"] == "has less head room than 8000 bytes"
    never = await head_room(Switch(head_room=0))
    assert never.values["handling"] == "never pauses its neighbour"


class Disturbed(Behind):
    """Before the switch with a tester that is disturbed wherever frames are lost."""

    async def measure(self, point: dict[str, Any], request: TrialRequest) -> tuple[Trial, bool]:
        trial, _ = await super().measure(point, request)
        disturbed = trial.reading.counts.lost > 0
        return trial.replace(verdict=Verdict(findings=(HELD_UP,) if disturbed else ())), disturbed


async def test_what_a_disturbed_trial_lost_bounds_no_head_room() -> None:
    options = HeadRoom.Options(most=200, loss_verification=0, needs=30_000, **COMMON)
    (result,) = await run(HeadRoom("room", options), Disturbed(Switch(xoff=20_000, head_room=10_000)))
    found, takes = bounds(result, "head_room_bytes"), bounds(result, "taken_bytes")
    assert (found.upper, found.limited_by, takes.upper, takes.limited_by) == (None, None, None, None)
    assert found.lower is not None
    assert found.lower <= 10_000
    assert result.verdict is ResultVerdict.DISTURBED
    assert result.values["accepted"] is None
    assert result.values["handling"] == "not known: every trial that lost frames was disturbed"
    (early,) = await run(HeadRoom("room", options), Disturbed(Switch(late=12_000)))
    assert "drops before it pauses" not in str(early.values["handling"])


async def test_what_the_tester_does_not_send_is_no_fault_of_the_switch() -> None:
    switch = Switch(unsent=3)
    for result in (await reaction(switch, 10_000), await storm(switch), await head_room(switch)):
        assert "frames were not sent" in str(result.values["handling"])
        assert result.values["accepted"] is None
        assert result.verdict is ResultVerdict.DISTURBED
        assert any("were not sent" in text for text in result.disturbances)


def test_the_silence_of_several_paused_streams_is_that_of_the_densest() -> None:
    def stream(name: str, frames: int, silence: Silence | None) -> StreamReading:
        counts = Counts(intended=frames, sent=frames, received=frames, lost=0)
        return StreamReading(name=name, counts=counts, arrivals=Arrivals(first_ns=0, last_ns=10**9, silence=silence))

    dense = stream("0->1 a", 990, Silence(from_ns=300, to_ns=333))
    rare = stream("0->1 b", 10, Silence(from_ns=0, to_ns=1000))
    none = StreamReading(name="0->1 c", counts=Counts(intended=2000, sent=2000, received=0, lost=2000))
    for paused in ((dense, rare), (rare, dense), (rare, dense, none)):
        seen = Observed(paused, (), 0, 0, 0, None, None)
        assert seen.silence_ns == (300, 333)
