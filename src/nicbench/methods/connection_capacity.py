"""Connection capacity: how many connections the DUT holds at once (as RFC 3511 section 5.2 asks of TCP).

Steps, for each frame size: one frame of each flow of each sending port, at a rate at which the DUT can make
connections of them, before it may forget the first; a binary search for the most flows of which every frame comes back.
The capacity is the sum of all ports. A trial with loss is repeated. Between trials the DUT must forget: in `settle`
before and after each, or by itself. A DUT that gives the place of an old connection to a new one loses no frame then:
where it runs Linux, its kernel counts them, and they are not held. `concurrent-connections` opens real connections.
Verified: every frame by its signature, and that learning frames pass before each trial; no flow is taught.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Final, NamedTuple

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSizes, Size, size_parameters
from nicbench.core.quantity import FramesPerSecond, LossVerification, Ratio
from nicbench.core.result import PASSES_NOTHING, Bounded, Result
from nicbench.core.table import Column, ResultTable
from nicbench.core.traffic import Ability
from nicbench.core.trial import Purpose
from nicbench.methods._loads import BurstPauses, TrialTimes
from nicbench.methods._results import (
    PER_PORT,
    SeveralTrials,
    bounded_unless,
    bounds_between,
    result_at,
    sending_ports,
)
from nicbench.methods.base import FRAME, TRIALS, Context, FrameMethod, Values

MOST_CONNECTIONS: Final = 65_536
_SHORTEST_TRIAL_S: Final = 0.001
_CAPACITY = Column(
    "connection_capacity",
    "Connections at once",
    unit="connections",
    form="whole",
    is_main=True,
    better="higher",
)


class Fill(NamedTuple):
    """A trial: how many connections each port asked for, and whether every frame came back."""

    connections: int
    came_back: bool
    held: int | None = None
    """How many of them were held, where the trial tells: the next one asks for as many."""


class ConnectionCapacity(FrameMethod):
    """The most connections that the DUT holds at once."""

    kind = "connection-capacity"
    question = "How many connections does {subject} hold at once?"

    class Options(Frozen):
        """Options of the bench file."""

        connections: int = Field(ge=1, le=MOST_CONNECTIONS)
        """The most that are tried, of each sending port; the traffic needs as many `flows`."""
        rate: Annotated[FramesPerSecond, Field(gt=0.0, le=1e9)] = 10_000.0
        """New connections a second, of each sending port. All must be made before the DUT forgets the first."""
        precision: Ratio = 0.01
        """The search ends where its interval is at most this share of its upper bound wide."""
        loss_verification: LossVerification = 1
        """The repetitions of a trial with loss before it counts."""
        frame_bytes: FrameSizes = (64,)
        """Frame sizes, and mixes by name."""
        trial: BurstPauses = BurstPauses()
        """Pauses of a trial. Two times `settle` lie between two trials: time for the DUT to forget, unless it begins
        each with an empty table (`dut: {kind: nat, empty_table: true}`).
        """

    options: Options

    def abilities(self) -> frozenset[Ability]:
        return frozenset({Ability.FRAME_COUNT})

    def estimate_s(self) -> float:
        options = self.options
        trials, left = 1, 1.0
        while left > max(options.precision, 1.0 / options.connections):
            trials, left = trials + 1, left / 2.0
        sent_s = options.connections / options.rate
        return self.points() * trials * (1 + options.loss_verification) * self._times(sent_s).estimate_s(1)

    def deviations(self) -> tuple[str, ...]:
        return ("connections are flows of one side, RFC 3511 section 5.2 asks for TCP connections",)

    async def measure_size(self, context: Context, size: Size) -> Result:
        options = self.options
        trials = SeveralTrials(context)
        sound: set[int] = set()
        ports = 1

        async def fill(connections: int) -> Fill:
            nonlocal ports
            made = []
            request = self._times(connections / options.rate).request(size, options.rate, Purpose.CONNECTIONS)
            request = request.replace(frames=connections)
            for _ in range(1 + options.loss_verification):
                trial, disturbed = await trials.measure(size_parameters(size), request)
                counts = trial.reading.counts
                ports = sending_ports(trial)
                replaced = trial.reading.replaced_connections or 0
                all_held = counts.failed == 0 and replaced == 0
                made.append(Fill(counts.sent // ports, all_held, (counts.received - replaced) // ports))
                if not disturbed:
                    sound.add(made[-1].connections)
                if all_held and made[-1].connections == connections:
                    return made[-1]
            # One that came back whole, but was not sent whole, says nothing of those that lost frames.
            return min(made, key=lambda one: (one.came_back, -one.connections))

        passed, failed = await most_held(fill, options.connections, options.precision)
        values: Values = {
            _CAPACITY.value: bounded_unless(
                failed not in sound, _bounded(passed * ports, None if failed is None else failed * ports)
            ),
            "made_in_ns": 1e9 * passed / options.rate,
            "connections_tried": options.connections * ports,
            "trials": len(trials.ids),
        }
        scope = PER_PORT if ports == 1 else f"sum of {ports} ports"
        return result_at(
            self, size, values, trials.verdict, trials=trials.ids, disturbances=trials.disturbances, scope=scope
        )

    def _times(self, sent_s: float) -> TrialTimes:
        return TrialTimes(duration=max(_SHORTEST_TRIAL_S, sent_s), **self.options.trial.model_dump())

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Connection capacity",
            caption=(
                "The most new flows, one frame of each, of which every frame came back and none gave its place to "
                "another: as many connections are held at once, those of all sending ports together. Beside it the "
                "fewest of which some were lost."
            ),
            columns=(
                FRAME,
                _CAPACITY,
                Column(
                    _CAPACITY.value,
                    "Interval",
                    unit="connections",
                    form="whole",
                    aspect="interval",
                    is_minor=True,
                ),
                Column("made_in_ns", "Made in", form="milliseconds"),
                Column("connections_tried", "Most tried", unit="connections", form="whole"),
                TRIALS,
            ),
            sentences=("holds {connection_capacity} at once",),
        )


async def most_held(fill: Callable[[int], Awaitable[Fill]], most: int, precision: float) -> tuple[int, int | None]:
    """The most connections that were held (0: none), and the fewest that were not (None: no frame was ever lost).

    A binary search, which begins where trials show the limit; the two are at most ``precision`` of the second apart, or
    one; further, where the tester sends too few to tell.
    """
    passed, failed, guess, stepped = 0, None, None, False
    while failed is None or failed - passed > max(1.0, precision * failed):
        asked = most if failed is None else (passed + failed) // 2
        is_guess = guess is not None and failed is not None and passed < guess < failed
        asked = guess if guess is not None and is_guess else asked
        made = await fill(asked)
        if not made.came_back:
            failed = made.connections if made.connections > passed else asked
            guess = None if is_guess else made.held  # a second guess might be as wrong, by one connection each
        elif made.connections > passed:
            passed = made.connections
            guess = passed + max(1, int(precision * passed)) if is_guess and not stepped else None
            stepped |= is_guess
        else:
            break
        if passed == most:
            break
    return passed, failed


def _bounded(passed: int, failed: int | None) -> Bounded:
    found = bounds_between(passed, failed, f"{PASSES_NOTHING}: frames were lost of {failed} connections already")
    return found.replace(passes_nothing=found.value is None)
