"""Service activation (ITU-T Y.1564): whether a path carries Ethernet services as agreed, alone and all at once.

Steps: in the service configuration test each service is sent by itself, at rising shares of its committed information
rate (CIR), then at CIR and excess information rate (EIR), then at more than it may have, which its policer must hold
back. In the service performance test every service is sent at its CIR at the same time. Each load is one judged trial.
Information rates are of whole frames, layer 2, as they came out; loss, mean delay, delay variation (99.9th percentile
less minimum) and availability (ITU-T Y.1563) are held against what the bench file accepts. Each direction is judged by
itself. Verified: every frame by its signature and its payload; every frame is timed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Self

from pydantic import Field, field_validator, model_validator

from nicbench.core.base import Frozen
from nicbench.core.frame_size import Size, mean_bytes, size_label, size_parameters
from nicbench.core.judging import Reason
from nicbench.core.quantity import Percent
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.table import Column, ResultTable
from nicbench.core.traffic import Ability, StreamLoad
from nicbench.core.trial import Purpose, Trial, TrialRequest
from nicbench.core.units import format_digits, format_rate
from nicbench.methods._loads import Duration, Pause, Validation, highest_frames_per_s
from nicbench.methods._services import (
    Service,
    Step,
    bounds_of,
    failures_of,
    loads_of,
    performance_failures,
    policed_rate,
    seen_of,
    shortest_policing_s,
    steps_of,
    unjudged,
    values_of,
    ways_of_trial,
)
from nicbench.methods.base import Context, FrameMethod, Misfit, Objection, Values

STEPS_PERCENT: Final = (25.0, 50.0, 75.0, 100.0)
STANDARD_S: Final = (900.0, 7200.0, 86_400.0)
SHORTEST_STEP_S, LONGEST_STEP_S = 1.0, 60.0
CONFIGURATION, PERFORMANCE = "configuration", "performance"
PASS, FAIL, UNKNOWN = "pass", "fail", "not judged"
ALL: Final = "all services"
_ACCEPTED: Final = {PASS: "yes", FAIL: "no"}
_LOST_BY_TESTER: Final = (Reason.RECEIVE_OVERRUN, Reason.TRANSMIT_REFUSED)
# Loads that differ by less, relatively, are the same load: only rounding lies between them.
_CLOSE: Final = 1e-6

_SERVICE = Column("service", "Service", form="text")
_STEP = Column("step", "Load", form="text")
_WAY = Column("way", "Way", form="text", is_optional=True)
_RATE = Column("information_rate_bits_per_s", "Information rate", is_main=True)
_LOSS = Column("loss_percent", "Loss", unit="%", form="of_frames")
_DELAYS = (
    Column("delay_mean_ns", "Mean delay"),
    Column("delay_variation_ns", "Delay variation"),
)
_OUTCOME = Column("outcome", "Outcome", form="text", is_main=True)


class ActivationTimes(Frozen):
    """The times of the two tests."""

    step: Duration = 10.0
    """Duration of each step of the service configuration test (ITU-T Y.1564: 1 s to 60 s)."""
    performance: Validation = 900.0
    """Duration of the service performance test (ITU-T Y.1564: 15 minutes, 2 or 24 hours); `0 s`: none."""
    drain: Pause = 2.0
    """How long frames may arrive after a transmission."""
    settle: Pause = 2.0
    """Pause before and after a trial, in which a policer's bucket fills."""

    def deviations(self) -> tuple[str, ...]:
        """Returns where the times are not those of the recommendation, in words for the report."""
        said = []
        if not SHORTEST_STEP_S <= self.step <= LONGEST_STEP_S:
            said.append(f"steps of {self.step:g} s, ITU-T Y.1564 asks for 1 s to 60 s")
        if self.performance not in STANDARD_S:
            lasts = f"a service performance test of {self.performance:g} s" if self.performance else "none"
            said.append(f"{lasts}, ITU-T Y.1564 asks for 15 minutes, 2 or 24 hours")
        return tuple(said)


class ServiceActivation(FrameMethod):
    """The service configuration test and the service performance test."""

    gives_points = False
    kind = "service-activation"
    question = "Does {subject} carry the agreed services as agreed?"

    class Options(Frozen):
        """Options of the bench file."""

        services: tuple[Service, ...] = Field(min_length=1)
        """The services."""
        steps: tuple[Percent, ...] = Field(default=STEPS_PERCENT, min_length=1)
        """Loads of the service configuration test, as shares of the CIR."""
        trial: ActivationTimes = ActivationTimes()
        """Times of the two tests."""

        @field_validator("services")
        @classmethod
        def _are_told_apart(cls, services: tuple[Service, ...]) -> tuple[Service, ...]:
            streams = [stream for service in services for stream in service.streams()]
            for what, names in (("services", [one.name for one in services]), ("services share a stream:", streams)):
                twice = next((name for name in names if names.count(name) > 1), None)
                if twice is not None:
                    raise ValueError(f"two {what} called {twice}: give each its own")
            return services

        @model_validator(mode="after")
        def _uses_bursts_up(self) -> Self:
            for service in self.services:
                needed_s = shortest_policing_s(service)
                if needed_s >= self.trial.step:
                    raise ValueError(
                        f"steps of {self.trial.step:g} s send less above CIR and EIR than the `burst` of "
                        f"{service.name}, so that nothing need be held back: write `trial: {{step: ...}}` above "
                        f"{format_digits(needed_s)} s"
                    )
            return self

    options: Options

    def points(self) -> int:
        return len(self._steps()) + bool(self.options.trial.performance)

    def frame_sizes(self) -> tuple[int | str, ...]:
        return tuple(dict.fromkeys(service.frame_bytes for service in self.options.services))

    def abilities(self) -> frozenset[Ability]:
        return frozenset({Ability.LATENCY, Ability.STREAM_LOADS})

    def estimate_s(self) -> float:
        times = self.options.trial
        pauses_s = times.drain + 2 * times.settle
        return len(self._steps()) * (times.step + pauses_s) + (times.performance and times.performance + pauses_s)

    def deviations(self) -> tuple[str, ...]:
        return self.options.trial.deviations()

    def objection(self, context: Any) -> Objection | None:
        if not context.pattern.is_pairs:
            return Objection(
                message=f"services run between two ports each, and the pattern is {context.pattern.value}",
                next_step="write `pattern: one-to-one` under `traffic`",
            )
        return None

    def find_stream_misfits(self, streams: Sequence[str]) -> Iterator[Misfit]:
        named = [(number, key, name) for number, service in enumerate(self.options.services)
                 for key, name in service.named_streams()]  # fmt: skip
        if len(named) == 1 and len(streams) == 1:
            return
        for number, key, name in named:
            if name not in streams:
                yield Misfit(
                    option=("services", number, key),
                    message=f"`traffic` has no stream {name}, which a service of {self.name} names",
                    next_step=f"add it under `traffic: {{streams: ...}}` (there: {', '.join(streams)}), or name "
                    f"another with `{'stream' if key == 'name' else key}`",
                )

    def _steps(self) -> list[tuple[Service, Step]]:
        every = self.options.services
        return [(service, step) for service in every for step in steps_of(service, self.options.steps)]

    async def run(self, context: Context) -> tuple[Result, ...]:
        results = []
        for service, step in self._steps():
            results += await self._measure_step(context, service, step)
        results.append(self._sum_up(CONFIGURATION, results))
        context.publish(results[-1])
        if self.options.trial.performance:
            together = await self._measure_together(context)
            results += [*together, self._sum_up(PERFORMANCE, together)]
            context.publish(results[-1])
        return tuple(results)

    async def _measure_step(self, context: Context, service: Service, step: Step) -> list[Result]:
        """Returns a result for each way of a step, or one without figures where the load cannot be sent."""
        (size,) = context.sizes((service.frame_bytes,))
        loads = _on_the_only_stream(context, loads_of(service, step, size))
        point = {"part": CONFIGURATION, "service": service.name, "step": step.name, **size_parameters(size)}
        why_not = await _why_not(context, ((size, sum(load.load_frames_per_s for load in loads)),))
        if why_not is not None:
            return [self._publish_unsent(context, point, step.bits_per_s, why_not)]
        request = self._request(loads, self.options.trial.step)
        trial, disturbed = await context.measure(point, request)
        results = []
        for way, readings in ways_of_trial(trial):
            seen = seen_of(trial, readings, service, loads)
            least, most = bounds_of(service, step, seen.duration_s)
            values: Values = {
                "offered_bits_per_s": step.bits_per_s,
                **values_of(seen),
                "least_bits_per_s": least,
                "most_bits_per_s": most,
                **(policed_rate(service, seen) if step.kind == "policing" else {}),
            }
            failures = failures_of(service, step, seen)
            open_ = unjudged(service, seen, long=False) if step.kind == "cir" else []
            results.append(self._publish(context, {**point, **way}, values, trial, disturbed, failures, open_))
        return results

    async def _measure_together(self, context: Context) -> list[Result]:
        """Sends every service at its CIR, and returns a result for each service and way."""
        services = self.options.services
        sizes = [context.sizes((service.frame_bytes,))[0] for service in services]
        committed = [Step("CIR", "cir", service.cir) for service in services]
        each = [loads_of(*one) for one in zip(services, committed, sizes, strict=True)]
        loads = _on_the_only_stream(context, tuple(load for of_service in each for load in of_service))
        sent = [(size, sum(load.load_frames_per_s for load in own)) for size, own in zip(sizes, each, strict=True)]
        points = [{"part": PERFORMANCE, "service": one.name, **size_parameters(size)}
                  for one, size in zip(services, sizes, strict=True)]  # fmt: skip
        why_not = await _why_not(context, sent)
        if why_not is not None:
            pairs = zip(points, services, strict=True)
            return [self._publish_unsent(context, point, service.cir, why_not) for point, service in pairs]
        trial, disturbed = await context.measure({"part": PERFORMANCE}, self._request(loads, self._performance_s))
        results = []
        for way, readings in ways_of_trial(trial):
            for service, point in zip(services, points, strict=True):
                seen = seen_of(trial, readings, service, loads)
                known = None if seen.availability is None else seen.availability.value
                values = {"offered_bits_per_s": service.cir, **values_of(seen), "available_percent": known}
                failures, open_ = performance_failures(service, seen), unjudged(service, seen, long=True)
                results.append(self._publish(context, {**point, **way}, values, trial, disturbed, failures, open_))
        return results

    @property
    def _performance_s(self) -> float:
        return self.options.trial.performance

    def _request(self, loads: tuple[StreamLoad, ...], duration_s: float) -> TrialRequest:
        """Returns the request for a trial of these loads; its size is their mean."""
        times = self.options.trial
        whole = sum(load.load_frames_per_s for load in loads)
        sizes = {size_label(load.size): load.size for load in loads}
        only = next(iter(sizes.values())) if len(sizes) == 1 else None
        mean = sum(load.load_frames_per_s * mean_bytes(load.size) for load in loads) / whole
        return TrialRequest(
            frame_bytes=mean_bytes(only) if only is not None else mean,
            mix=None if isinstance(only, int) else only,
            load_frames_per_s=whole,
            duration_s=duration_s,
            drain_s=times.drain,
            settle_s=times.settle,
            purpose=Purpose.AVERAGE,
            streams=loads,
        )

    def _publish(
        self,
        context: Context,
        parameters: dict[str, Any],
        values: Values,
        trial: Trial,
        disturbed: bool,
        failures: Sequence[str],
        open_: Sequence[str],
    ) -> Result:
        # What the tester did not send was not tried, and what it lost by itself is no failure of the service.
        not_tried = (Reason.UNSENT, *_LOST_BY_TESTER) if failures else (Reason.UNSENT,)
        unjudgeable = [finding.text for finding in trial.verdict.findings if finding.reason in not_tried]
        outcome = UNKNOWN if unjudgeable else FAIL if failures else UNKNOWN if open_ else PASS
        why = "; ".join(unjudgeable or (*failures, *(f"{name} is not known" for name in open_)))
        verdict = ResultVerdict.DISTURBED if disturbed else ResultVerdict.VALID
        result = self._result(
            parameters, {**values, "outcome": outcome, "accepted": _ACCEPTED.get(outcome), "why": why or None},
            ResultVerdict.INCOMPLETE if outcome == UNKNOWN and not disturbed else verdict,
            (trial.id,), (trial.verdict.texts if disturbed else ()),
        )  # fmt: skip
        context.publish(result)
        return result

    def _publish_unsent(self, context: Context, parameters: dict[str, Any], bits_per_s: float, why: str) -> Result:
        values: Values = {
            "offered_bits_per_s": bits_per_s,
            _RATE.value: Bounded(value=None, reason_null=why),
            "outcome": UNKNOWN,
            "why": why,
        }
        result = self._result(parameters, values, ResultVerdict.INCOMPLETE, (), (why,))
        context.publish(result)
        return result

    def _sum_up(self, part: str, results: Sequence[Result]) -> Result:
        """Returns the verdict on all services of one of the tests."""
        outcomes = [result.values["outcome"] for result in results]
        outcome = FAIL if FAIL in outcomes else UNKNOWN if UNKNOWN in outcomes else PASS
        words = " and ".join(service.words for service in self.options.services)
        bad = [_place(result) for result in results if result.values["outcome"] == (outcome if outcome != PASS else "")]
        answers = {
            PASS: f"passes the service {part} test of {words}",
            FAIL: f"does not pass the service {part} test of {words}: {', '.join(bad)}",
            UNKNOWN: f"was not tested in full by the service {part} test of {words}: {', '.join(bad)}",
        }
        verdicts = {result.verdict for result in results}
        worst = next((one for one in (ResultVerdict.INCOMPLETE, ResultVerdict.DISTURBED) if one in verdicts), None)
        values: Values = {"outcome": outcome, "answer": answers[outcome], "why": ", ".join(bad) or None}
        return self._result({"part": part, "service": ALL}, values, worst or ResultVerdict.VALID, (), ())

    def _result(
        self,
        parameters: dict[str, Any],
        values: Values,
        verdict: ResultVerdict,
        trials: tuple[str, ...],
        disturbances: Iterable[str],
    ) -> Result:
        place = [str(parameters[name]) for name in ("part", "service", "step", "way") if name in parameters]
        return Result(
            id="/".join((self.name, *place)),
            method=self.kind,
            scope="one service, one way",
            parameters=parameters,
            values=values,
            verdict=verdict,
            disturbances=tuple(dict.fromkeys(disturbances)),
            trials=trials,
        )

    @classmethod
    def tables(cls) -> tuple[ResultTable, ...]:
        notes = (("answer", "All services"),)
        common: dict[str, Any] = {"has_basis": False, "sentences": ("{answer}",), "notes": notes}
        configuration = ResultTable(
            title="Service configuration test",
            part=CONFIGURATION,
            caption=(
                "ITU-T Y.1564: each service by itself. Rates are of whole frames, layer 2. At CIR + EIR and above, "
                "where excess is not marked, the information rate alone is judged: at least the CIR less the loss "
                "accepted, and at most CIR and EIR, with the burst spread over the step. Policed rate: what the "
                "policer lets through in the long run, between what came less the burst and all that came."
            ),
            columns=(
                *(_SERVICE, _STEP, _WAY, Column("offered_bits_per_s", "Offered"), _RATE),
                Column("least_bits_per_s", "At least"),
                Column("most_bits_per_s", "At most", is_optional=True),
                *(_LOSS, *_DELAYS),
                Column("policed_rate_bits_per_s", "Policed rate", aspect="span", is_optional=True),
                _OUTCOME,
            ),
            **common,
        )
        performance = ResultTable(
            title="Service performance test",
            part=PERFORMANCE,
            caption=(
                "ITU-T Y.1564: every service at its CIR, all at once. Available is the time outside of ten and more "
                "consecutive seconds in which over half of the frames were lost (ITU-T Y.1563); without a figure where "
                "the counts of a long test do not tell whether that was so."
            ),
            columns=(
                *(_SERVICE, _WAY, Column("offered_bits_per_s", "Offered"), _RATE, _LOSS, *_DELAYS),
                Column("available_percent", "Available", unit="%", form="trimmed"),
                _OUTCOME,
            ),
            **common,
        )
        return configuration, performance


def _on_the_only_stream(context: Context, loads: tuple[StreamLoad, ...]) -> tuple[StreamLoad, ...]:
    """Returns the loads, on the one stream of a traffic that declares none, whatever the service is called."""
    if len(loads) == 1 and len(context.streams) == 1:
        return (loads[0].replace(stream=context.streams[0]),)
    return loads


async def _why_not(context: Context, loads: Sequence[tuple[Size, float]]) -> str | None:
    """Returns why tester or line cannot carry these loads at once, each in frames per second; None where they can."""
    share = 0.0
    for size, frames_per_s in loads:
        line_rate = context.line_rate_frames_per_s(size)
        ceiling = await context.ceiling_frames_per_s(size)
        most = highest_frames_per_s(line_rate, ceiling)
        share += frames_per_s / most if most > 0.0 else math.inf
        if share > 1.0 + _CLOSE:
            what = "the line carries" if most == line_rate else "the tester sends"
            together = " of all services together" if len(loads) > 1 else ""
            return f"{what} no more than {format_rate(most)} at {size_label(size)} bytes: too little{together}"
    return None


def _place(result: Result) -> str:
    """Returns where a verdict was given: "gold at CIR + EIR", with its reason."""
    said = result.parameters
    step = f" at {said['step']}" if "step" in said else ""
    way = f" from {said['way']}" if "way" in said else ""
    return f"{said['service']}{step}{way} ({result.values['why']})"
