"""Testers that fall short by a constant share: which share each frame size has, learnt from trials at two loads.

One shortfall that comes twice looks like a ceiling. Only a trial at another load tells whether the tester sends the
same rate there, or the same share; until then nobody is told of a ceiling.
"""

from __future__ import annotations

from nicbench.core.frame_size import Size, size_label
from nicbench.core.trial import Trial, TrialRequest
from nicbench.stats.limits import Offer, find_constant_share


class TesterShares:
    """What the tester offered at each frame size, and the share that it is known to send."""

    def __init__(self) -> None:
        self._offers: dict[str, list[Offer]] = {}
        self._shares: dict[str, float] = {}

    def share_of(self, size: Size) -> float:
        """The share of a load that the tester sends at this frame size; 1 as long as no other is known."""
        return self._shares.get(size_label(size), 1.0)

    def note_shortfall(self, request: TrialRequest, rate_frames_per_s: float) -> bool:
        """Whether the rate that was sent instead of a load shows, with earlier ones, that the share is constant."""
        size, load = size_label(request.size), request.load_frames_per_s
        if load is None or size in self._shares:
            return False
        offers = self._offers.setdefault(size, [])
        offers.append(Offer(load, rate_frames_per_s, load * request.duration_s))
        share = find_constant_share(offers)
        if share is not None:
            self._shares[size] = share
        return share is not None

    def note_trial(self, trial: Trial) -> None:
        """Notes a valid trial: a load that was sent in full contradicts a share."""
        load, counts = trial.request.load_frames_per_s, trial.reading.counts
        if (
            load is None
            or not trial.verdict.valid
            or trial.request.phases
            or trial.request.streams
            or not counts.intended
        ):
            return
        sent = load * (counts.offered) / counts.intended
        self._offers.setdefault(size_label(trial.request.size), []).append(Offer(load, sent, counts.intended))
