"""Every flow is taught before a trial, as often as it takes; flows that do not pass are listed, and spoil no trial."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import HostError
from nicbench.core.events import Bus, Note
from nicbench.core.judging import Reason, Thresholds
from nicbench.core.pattern import Way
from nicbench.core.reading import Counts, Flows, LearntFlows
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.traffic import Learning, Traffic
from nicbench.core.trial import Interruption, PortReading, Purpose, StreamReading, Trial, TrialRequest
from nicbench.measure import learning as module
from nicbench.measure.learning import Patience, add_unlearnt
from nicbench.measure.samples import SampleLog
from nicbench.measure.surroundings import TrialSetup
from nicbench.measure.trials import TrialMaker
from nicbench.report.gather import _unlearnt
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.duts.simulated import Simulated, SimulatedOptions
from nicbench.testbed.testers._engine_streams import learning_requests
from nicbench.testbed.testers._packet_engine import PacketsOptions, PacketsTester

from .fake_tester import FakeTester
from .rig import with_counts

FLOWS = 8192
REQUEST = TrialRequest(
    frame_bytes=64, load_frames_per_s=1000.0, duration_s=1.0, drain_s=0.1, settle_s=0.1, purpose=Purpose.SEARCH
)
WAY = Addressing(0, 1, "02:00:00:00:00:01", "02:00:00:00:00:02", 4, "198.18.0.1", "198.19.0.1")
BACK = Addressing(1, 0, "02:00:00:00:00:02", "02:00:00:00:00:01", 4, "198.19.0.1", "198.18.0.1")


@dataclass
class Opening(FakeTester):
    """Before a DUT that drops the first ``drops`` frames of each flow, and passes nothing of the ``blocked`` ones."""

    drops: int = 0
    blocked: int = 0
    unsent: int = 0
    """The flows of which the tester sends no learning frame."""
    sent: int = 0
    taught: list[int] = field(default_factory=list)
    """The frames of each flow, by attempt."""

    async def learn(self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...]) -> frozenset[Way]:
        self.sent += 1
        return frozenset() if self.sent > self.drops and self.blocked < FLOWS else frozenset({(0, 1)})

    async def teach(
        self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...], frames_per_flow: int
    ) -> tuple[LearntFlows, ...]:
        self.taught.append(frames_per_flow)
        self.sent += frames_per_flow
        silent = self.blocked if self.sent > self.drops else FLOWS
        name = "0->1"
        return (
            LearntFlows(
                stream=name,
                transmit_port=0,
                receive_port=1,
                flows=FLOWS,
                silent=silent,
                frames_per_flow=frames_per_flow,
                unsent=self.unsent,
            ),
        )


@dataclass
class Bench:
    """Trials by one maker, and the notes that it published."""

    tester: FakeTester
    learning: Learning = field(default_factory=Learning)
    thresholds: Thresholds = field(default_factory=Thresholds)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        bus = Bus()
        bus.subscribe(lambda event: self.notes.append(event.text) if isinstance(event, Note) else None)
        setup = TrialSetup(
            self.tester,
            Simulated(SimulatedOptions()),
            (WAY, BACK),
            port_names=("t0", "t1"),
            learning=self.learning,
        )
        self.maker = TrialMaker(setup, self.thresholds, SampleLog({}, bus))
        self.made = 0

    async def trial(self, test: str = "t", request: TrialRequest = REQUEST) -> Trial:
        self.made += 1
        return await self.maker.make(f"{test}/{self.made}/0", test, {}, request, 0)


async def test_where_all_flows_pass_at_once_each_is_sent_once() -> None:
    tester = Opening(1e9)
    bench = Bench(tester)
    trial = await bench.trial()
    assert (tester.taught, bench.notes) == ([1], [])
    assert [(each.flows, each.silent) for each in trial.reading.learning] == [(FLOWS, 0)]
    assert Trial.model_validate_json(trial.model_dump_json()) == trial


async def test_flows_are_sent_again_until_all_return() -> None:
    tester = Opening(1e9, drops=1)
    bench = Bench(tester)
    (learnt,) = (await bench.trial()).reading.learning
    assert tester.taught == [1, 2]
    assert (learnt.silent, learnt.frames_per_flow) == (0, 3)


async def test_flows_that_never_pass_are_told_and_the_trial_is_valid() -> None:
    bench = Bench(Opening(1e9, blocked=12))
    trials = [await bench.trial(), await bench.trial()]
    assert [trial.verdict.valid for trial in trials] == [True, True]
    said = "12 of 8192 flows do not pass from port t0 to t1"
    assert bench.notes == [f"t, before trial t0001: {said}: none of 7 learning frames of each of them came back"]
    # A trial for which flows were not sent again bears what is known of them.
    assert trials[1].reading.learning == trials[0].reading.learning
    told = add_unlearnt(result(), trials, ("t0", "t1"))
    assert (told.disturbances, told.verdict) == ((f"{said}, as learning frames showed",), ResultVerdict.VALID)


async def test_flows_that_the_tester_did_not_send_are_told_as_its_own_and_not_as_silent() -> None:
    bench = Bench(Opening(1e9, unsent=12))
    trial = await bench.trial()
    said = "a learning frame of 12 of 8192 flows from port t0 to t1 was not sent by the tester"
    assert trial.verdict.valid
    assert bench.notes == [f"t, before trial t0001: {said}"]
    assert add_unlearnt(result(), [trial], ("t0", "t1")).disturbances == (said,)
    assert list(_unlearnt([named(trial)])) == [f"{said} before trials: what these flows lose counts as lost."]
    assert Trial.model_validate_json(trial.model_dump_json()) == trial


def named(trial: Trial) -> Trial:
    """The trial with the ports that its report names."""
    ports = tuple(PortReading(name=name) for name in ("t0", "t1"))
    return trial.replace(reading=trial.reading.replace(ports=ports))


async def test_a_threshold_also_makes_trials_invalid_before_which_flows_were_not_sent() -> None:
    bench = Bench(Opening(1e9, unsent=12), thresholds=Thresholds(unlearnt_flow_share=0.001))
    verdict = (await bench.trial()).verdict
    assert verdict.reasons == (Reason.UNLEARNT,)
    assert "were not taught before the trial: the tester sent no learning frame" in verdict.findings[0].text


async def test_where_the_tester_sends_no_learning_frame_nothing_is_proved_to_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "UNTIL_FRAMES_COME_BACK_S", (0.0,))
    tester = Opening(1e9, unsent=FLOWS, drops=1000)
    with pytest.raises(HostError, match="nothing comes back from port t0 to t1"):
        await Bench(tester).trial()


@dataclass
class Shortfall:
    """What became of one sending of 256 flows: frames that the tester did not send, or that the DUT's port refused."""

    by_tester: int = 0
    by_back_pressure: int = 0
    silent: int = 0


class Faltering(PacketsTester):
    """A tester whose engine sends less than it was asked for, in each sending as ``shortfalls`` say."""

    shortfalls: tuple[Shortfall, ...] = ()
    sendings = 0

    async def _send_learning(
        self, number: int, request: TrialRequest, streams: list[dict[str, Any]], duration_s: float
    ) -> tuple[StreamReading, ...]:
        short = self.shortfalls[self.sendings]
        self.sendings += 1
        frames = streams[0]["frames"]
        sent = frames - short.by_tester - short.by_back_pressure
        counts = Counts(
            intended=frames,
            sent=sent,
            unsent_tester=short.by_tester,
            unsent_backpressure=short.by_back_pressure,
            received=sent,
            lost=0,
        )
        nothing = dict.fromkeys(("with_loss", "with_reordering", "with_duplicates", "with_corruption"), 0)
        flows = Flows(flows=256, silent=short.silent, **nothing)
        return (StreamReading(name="0->1", counts=counts, flows=flows),)


async def teach(*shortfalls: Shortfall) -> tuple[int, LearntFlows]:
    """How often one attempt was sent, and what came of it."""
    tester = Faltering(FakeHost("tester"), "nicbench-packets", options_of(Traffic(flows=256)))
    tester.shortfalls = shortfalls
    (learnt,) = await tester.teach(1, REQUEST, (WAY,), 1)
    return tester.sendings, learnt


async def test_an_attempt_that_the_tester_did_not_send_in_full_is_sent_again_and_counts_once() -> None:
    sendings, learnt = await teach(Shortfall(by_tester=9), Shortfall(silent=2))
    assert (sendings, learnt.silent, learnt.unsent, learnt.frames_per_flow) == (2, 2, 0, 1)


async def test_what_stays_unsent_is_the_testers_and_the_sendings_are_bounded() -> None:
    sendings, learnt = await teach(*[Shortfall(by_tester=9, silent=3)] * 5)
    assert (sendings, learnt.silent, learnt.unsent) == (3, 3, 9)


async def test_flows_that_a_lossless_port_refused_do_not_pass() -> None:
    sendings, learnt = await teach(Shortfall(by_back_pressure=9))
    assert (sendings, learnt.silent, learnt.unsent) == (1, 9, 0)


def result() -> Result:
    return Result(id="t/64", method="throughput", parameters={}, verdict=ResultVerdict.VALID, values={}, trials=())


async def test_a_threshold_makes_trials_invalid_before_which_flows_did_not_pass() -> None:
    tester = Opening(1e9, blocked=12)
    bench = Bench(tester, thresholds=Thresholds(unlearnt_flow_share=0.001))
    verdict = (await bench.trial()).verdict
    assert verdict.reasons == (Reason.UNLEARNT,)
    assert verdict.findings[0].text == "0.15 % of the flows did not pass before the trial"
    await bench.trial()
    assert tester.taught == [1, 2, 4] * 2  # the repeat teaches anew
    assert (
        await Bench(Opening(1e9, blocked=8), thresholds=Thresholds(unlearnt_flow_share=0.001)).trial()
    ).verdict.valid


async def test_where_no_flow_passes_the_run_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNTIL_FRAMES_COME_BACK_S", (0.0, 0.0))
    with pytest.raises(HostError, match="nothing comes back from port t0 to t1"):
        await Bench(Opening(1e9, blocked=FLOWS)).trial()


async def test_flows_are_taught_again_where_the_dut_may_have_forgotten_them() -> None:
    tester = Opening(1e9)
    bench = Bench(tester)
    await bench.trial()
    await bench.trial()
    assert len(tester.taught) == 1
    await bench.trial("another test")
    assert len(tester.taught) == 2
    reset = Interruption(command=("true",), on="dut", after_s=0.0, timeout_s=1.0)
    bench.maker._learner.note(trial_of(await bench.trial("another test"), reset))
    await bench.trial("another test")
    assert len(tester.taught) == 3
    always = Bench(tester, Learning(again_after=0.0))
    await always.trial()
    await always.trial()
    assert len(tester.taught) == 5


def trial_of(trial: Trial, interruption: Interruption) -> Trial:
    return trial.replace(request=trial.request.replace(interruption=interruption))


async def test_nothing_is_sent_before_a_trial_where_frames_of_its_size_have_just_come_back() -> None:
    tester = Opening(1e9)
    bench = Bench(tester, Learning(flows="few"))
    trials = [await bench.trial(), await bench.trial()]
    assert (tester.sent, [trial.verdict.valid for trial in trials]) == (1, [True, True])
    await bench.trial(request=REQUEST.replace(frame_bytes=128))
    assert tester.sent == 2


async def test_behind_a_trial_that_lost_frames_they_are_sent_once_for_it_and_for_the_next() -> None:
    tester = Opening(900.0)
    bench = Bench(tester, Learning(flows="few"))
    await bench.trial()
    assert tester.sent == 2
    await bench.trial()
    assert tester.sent == 3


async def test_a_proof_does_not_stand_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    for age in ("_STANDS_S", "_LEARN_AGAIN_S"):
        monkeypatch.setattr(module, age, 0.0)
        tester = Opening(1e9)
        bench = Bench(tester, Learning(flows="few"))
        await bench.trial()
        await bench.trial()
        assert tester.sent == 2
        monkeypatch.undo()


async def test_few_frames_are_a_proof_and_teach_nothing() -> None:
    tester = Opening(1e9)
    trial = await Bench(tester, Learning(flows="few")).trial()
    assert (tester.taught, tester.sent, trial.reading.learning) == ([], 1, ())
    assert "learning" not in trial.model_dump(mode="json")["reading"]
    ceiling = REQUEST.replace(purpose=Purpose.CEILING)
    await Bench(tester).trial(request=ceiling)
    assert tester.taught == []


def test_each_port_sends_every_flow_at_the_rate_and_all_streams_end_together() -> None:
    streams = [{"name": "a", "share": 0.5, "flows": 300, "burst_frames": 9}, {"name": "b", "share": 0.5, "flows": 100}]
    traffic = Traffic.model_validate({"streams": streams, "learning": {"rate": 2000.0}})
    for frames_per_flow in (1, 4):
        asked = learning_requests(traffic, (WAY, BACK), 64, frames_per_flow, 8)
        assert [one["frames"] for one in asked] == [300 * frames_per_flow, 100 * frames_per_flow] * 2
        assert [one["rate_frames_per_s"] for one in asked] == [1500.0, 500.0] * 2
        assert not any("burst_frames" in one for one in asked)
    (one,) = learning_requests(Traffic(flows=1), (WAY,), 64, 1, 8)
    assert one["frames"] == 8


async def test_of_the_flows_of_a_capture_file_nothing_is_said() -> None:
    tester = PacketsTester(FakeHost("tester"), "nicbench-packets", options_of(Traffic(pcap="office.pcap")))
    assert await tester.teach(1, REQUEST, (WAY,), 1) == ()  # and nothing is asked of an engine that does not run


def options_of(traffic: Traffic) -> PacketsOptions:
    return PacketsOptions(
        run_key=1,
        ports=(),
        worker_cpu=None,
        watch_cpus=(),
        virtual_clock=True,
        huge_pages=False,
        memory_mib=1,
        burst=32,
        catch_up_s=0.001,
        latency_from="software",
        timestamps="tsc",
        traffic=traffic,
    )


@dataclass
class Far(FakeTester):
    """Frames come back ``delay_s`` after they were sent; of those of a trial ``lost`` do not."""

    delay_s: float = 0.0
    lost: int = 0

    async def learn(self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...]) -> frozenset[Way]:
        return frozenset() if request.settle_s > self.delay_s else frozenset({(0, 1)})

    async def teach(
        self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...], frames_per_flow: int
    ) -> tuple[LearntFlows, ...]:
        silent = 0 if request.settle_s > self.delay_s else FLOWS
        flows = LearntFlows(
            stream="0->1", transmit_port=0, receive_port=1, flows=FLOWS, silent=silent, frames_per_flow=frames_per_flow
        )
        return (flows,)

    async def trial(
        self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...], during: Any = None
    ) -> Any:
        reading = await super().trial(number, request, addressing, during)
        sent = reading.counts.sent
        late = 0 if request.drain_s > self.delay_s else sent - self.lost
        counts = Counts(intended=sent, sent=sent, received=sent - self.lost - late, lost=self.lost, late=late)
        return with_counts(reading, counts)


@pytest.mark.parametrize("lost", [0, 10])
@pytest.mark.parametrize(
    ("delay_s", "settle_s", "drain_s"), [(0.2, 0.05, 1.0), (0.6, 0.05, 2.0), (2.0, 0.05, 8.0), (30.0, 31.0, None)]
)
async def test_how_long_frames_take_is_learnt_once_and_waited_for_everywhere(
    delay_s: float, settle_s: float, drain_s: float | None, lost: int
) -> None:
    bench = Bench(tester := Far(1e9, delay_s=delay_s, lost=lost))
    update = {"settle_s": settle_s, "drain_s": 0.1 if settle_s < delay_s else delay_s + 1.0}
    trials = [await bench.trial(request=REQUEST.replace(**update)) for _ in range(2)]
    assert [trial.verdict.reasons for trial in trials] == [(), ()]
    assert [trial.reading.counts.lost for trial in trials] == [lost, lost]
    assert [each.silent for trial in trials for each in trial.reading.learning] == [0, 0]
    assert [trial.reading.drain_s for trial in trials] == [drain_s, drain_s]
    assert all(request.drain_s > delay_s for request in tester.requests)
    assert len(bench.notes) == (1 if settle_s < delay_s else 0)


async def test_a_run_that_goes_on_knows_how_long_frames_take() -> None:
    first = Bench(Far(1e9, delay_s=0.6, lost=10))
    request = REQUEST.replace(settle_s=0.05)
    made = await first.trial(request=request)
    assert Patience([made]).needed_s == first.maker._patience.needed_s


async def test_a_path_that_takes_longer_than_anybody_waits_is_named_with_the_option_for_it() -> None:
    with pytest.raises(HostError, match="nothing comes back") as caught:
        await Bench(Far(1e9, delay_s=30.0)).trial()
    assert "write a longer `settle` where frames take over 4 s" in str(caught.value.next_step)
