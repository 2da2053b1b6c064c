"""The times of a trial, shared by every method that sends frames (RFC 2544 sections 23 and 24)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from nicbench.core.base import Frozen
from nicbench.core.frame_size import MAXIMUM, MINIMUM, Size, mean_bytes
from nicbench.core.quantity import Seconds
from nicbench.core.trial import Purpose, TrialRequest

# RFC 2544 section 9.1 for Ethernet.
RFC_2544_FRAME_BYTES = (64, 128, 256, 512, 1024, 1280, 1518)


def missing_sizes(frame_bytes: Iterable[int | str]) -> tuple[str, ...]:
    """Returns the sizes of RFC 2544 section 9.1 that are not measured, in words for the report."""
    smallest, *_, largest = RFC_2544_FRAME_BYTES
    extremes: dict[int | str, int] = {MINIMUM: smallest, MAXIMUM: largest}
    measured = {extremes.get(size, size) for size in frame_bytes}
    missing = [str(size) for size in RFC_2544_FRAME_BYTES if size not in measured]
    asked = "RFC 2544 section 9.1 asks for seven"
    return (f"no frames of {', '.join(missing)} bytes, {asked}",) if missing else ()


SHORTEST_TRIAL_S = 0.001
LONGEST_TIME_S = 86_400.0
# Extra time for a trial that ends with its last frame; the engine's own count ends it in time.
_SLACK = 1.01


def _sensible_duration(duration_s: float) -> float:
    if not SHORTEST_TRIAL_S <= duration_s <= LONGEST_TIME_S:
        why = f"a trial of {duration_s:g} s measures nothing useful"
        raise _refusal(why, "1 ms to 1 day; RFC 2544 asks for 60 s, 1 s is a quick look")
    return duration_s


def _sensible_pause(pause_s: float) -> float:
    if pause_s > LONGEST_TIME_S:
        raise _refusal(f"{pause_s:g} s is longer than a day", "at most 1 day; RFC 2544 asks for 2 s and 5 s")
    return pause_s


def _refusal(why: str, accepted: str) -> PydanticCustomError:
    """Returns an error in the wording of the quantities' errors (core/quantity.py)."""
    return PydanticCustomError("quantity", "{why}", {"why": why, "accepted": accepted})


Duration = Annotated[Seconds, AfterValidator(_sensible_duration)]
Pause = Annotated[Seconds, AfterValidator(_sensible_pause)]
Validation = Annotated[Seconds, AfterValidator(_sensible_pause)]
"""The duration of a validation trial; zero is no validation trial."""


class TrialTimes(Frozen):
    """The times of a trial. The defaults are RFC 2544's.

    These are 60 s (section 24), 2 s for late frames and 5 s to settle (section 23).
    """

    duration: Duration = 60.0
    """Duration of the transmission (RFC 2544 section 24: 60 s)."""
    drain: Pause = 2.0
    """How long frames may arrive after the transmission (section 23)."""
    settle: Pause = 5.0
    """Pause before and after a trial (section 23)."""

    def request(self, size: Size, load_frames_per_s: float | None, purpose: Purpose) -> TrialRequest:
        """Returns the request for a trial with these times."""
        return TrialRequest(
            frame_bytes=mean_bytes(size),
            mix=None if isinstance(size, int) else size,
            load_frames_per_s=load_frames_per_s,
            duration_s=self.duration,
            drain_s=self.drain,
            settle_s=self.settle,
            purpose=purpose,
        )

    def request_of_frames(
        self, size: Size, load_frames_per_s: float, purpose: Purpose, frames: int | None
    ) -> TrialRequest:
        """Returns the request for a trial that ends after a number of frames of each port, if it lasts long enough."""
        request = self.request(size, load_frames_per_s, purpose)
        if frames is None or load_frames_per_s * self.duration < frames:
            return request
        long_enough_s = min(self.duration, _SLACK * frames / load_frames_per_s)
        return request.replace(frames=frames, duration_s=long_enough_s)

    def estimate_s(self, trials: int) -> float:
        """Returns the time that a number of trials take: learning frames, settle, transmission, drain, settle."""
        return trials * (self.duration + self.drain + 2 * self.settle)

    def deviations(self, validation_s: float | None = None) -> tuple[str, ...]:
        """Returns where these times are shorter than RFC 2544 requires, in words for the report.

        A search may use shorter trials where one of full length, of ``validation_s``, confirms its answer.
        """
        standard = TrialTimes()
        pairs = (
            (
                "validation trial" if validation_s else "trial duration",
                validation_s or self.duration,
                standard.duration,
                "24",
            ),
            ("drain", self.drain, standard.drain, "23"),
            ("settle time", self.settle, standard.settle, "23"),
        )
        return tuple(
            f"{name} {mine:g} s, RFC 2544 section {section} asks for {theirs:g} s"
            for name, mine, theirs, section in pairs
            if mine < theirs
        )


class BurstPauses(Frozen):
    """The pauses of a burst: 2 s for buffers to empty (RFC 9004 section 6.2), 5 s to settle (RFC 2544 section 23)."""

    drain: Pause = 2.0
    """How long buffers have to empty after a burst (RFC 9004 section 6.2)."""
    settle: Pause = 5.0
    """Pause before a burst (RFC 2544 section 23)."""
