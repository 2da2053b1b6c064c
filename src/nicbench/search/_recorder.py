"""Between a search and ``measure``: keeps every sample, counts the budget, tells the tester's limit from the DUT's."""

from __future__ import annotations

from nicbench.search._interval import same_load
from nicbench.search.base import CeilingReached, Limits, Measure, Sample


class BudgetSpent(Exception):  # noqa: N818 - it ends a search, it is no error
    """The trials of the search are used up; the outcome is computed from what there is."""


class ShareSpent(Exception):  # noqa: N818 - as above
    """The trials that remain are reserved for what comes next."""


class Recorder:
    """Measures at most ``maximum_trials`` times, over all restarts; a restart gets the samples there are first."""

    def __init__(self, measure: Measure, limits: Limits) -> None:
        self.samples: list[Sample] = []
        self._measure = measure
        self._limits = limits
        self._trials_left = limits.maximum_trials
        self._ceilings = 0
        self._reserved = 0
        self._served: list[int] = []

    @property
    def trials_left(self) -> int:
        """How many trials may be made before those that are reserved."""
        return max(0, self._trials_left - self._reserved)

    def reserve(self, trials: int) -> None:
        """Keeps so many of the trials that are left back, until the next call."""
        self._reserved = trials

    def restart(self) -> None:
        """From here on, a search that asks again for a load it had is given the sample it had."""
        self._served = []

    def measure(self, load_frames_per_s: float, duration_s: float) -> Sample:
        """The next sample at this load: one from before the restart, else a new trial."""
        for index, sample in enumerate(self.samples):
            if index in self._served:
                continue
            if same_load(sample.load_frames_per_s, load_frames_per_s) and same_load(sample.duration_s, duration_s):
                self._served.append(index)
                # Rounding apart, it is the load asked for; MLRsearch compares exactly.
                return sample.model_copy(update={"load_frames_per_s": load_frames_per_s, "duration_s": duration_s})
        return self._new_trial(load_frames_per_s, duration_s)

    def _new_trial(self, load_frames_per_s: float, duration_s: float) -> Sample:
        if self._trials_left <= 0:
            raise BudgetSpent
        if self._trials_left <= self._reserved:
            raise ShareSpent
        self._trials_left -= 1
        try:
            return self._taken(load_frames_per_s, duration_s)
        except CeilingReached:
            # What the tester cannot send tells nothing of the DUT: it costs no trial, unless it wavers again and again.
            self._ceilings += 1
            self._trials_left += self._ceilings == 1
            raise

    def _taken(self, load_frames_per_s: float, duration_s: float) -> Sample:
        sample = self._measure(load_frames_per_s, duration_s)
        # A shortfall below half the precision moves no bound by more than that. A larger one says that this load was
        # not offered: counted as sent it would pass, counted as lost (MLRsearch adds unsent to loss) it would fail. On
        # a disturbed machine it is kept as what it tells of the load that was offered: better than no answer at all.
        if sample.sent_share < 1.0 - self._limits.precision / 2:
            offered = sample.load_frames_per_s * sample.sent_share
            if not sample.valid and offered > 0.0:
                self.samples.append(sample.model_copy(update={"load_frames_per_s": offered}))
            raise CeilingReached(offered, disturbed=not sample.valid)
        self._served.append(len(self.samples))
        self.samples.append(sample)
        return sample
