"""What it costs to state a rate for a clock that no trial saw: the error of the exponent, over the distance in clock.

A DUT that its core limits is modelled with an exponent of 1, proportional to the clock. Within the clocks that were
seen the trials themselves lie about that line; beyond them nothing holds it. What a core waits for outside of itself,
as memory, does not follow its clock: 48 overloaded trials of a forwarding kernel at each of two frame sizes gave
exponents of 0.78 and 0.87, each with an error of 0.12.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nicbench.stats.capacity import EVEN, Posterior

EXPONENT_ERROR = 0.2
"""The standard deviation of the exponent of a DUT that its core limits."""
_NODES = np.linspace(-2.4, 2.4, 7)
_DENSITIES = np.exp(-0.5 * _NODES**2)
_SHARES = _DENSITIES / _DENSITIES.sum()
_ERRORS = EXPONENT_ERROR * _NODES / np.sqrt(np.sum(_SHARES * _NODES**2))
_NEGLIGIBLE = 1e-8
"""The share of the largest weight below which a point of the grid tells nothing."""


def extrapolate_clock(posterior: Posterior, distance: float) -> Posterior:
    """Returns what is known of a rate that is stated for a clock higher by this distance, in logarithms, than any seen.

    At the highest clock that was seen the rate is as certain as before.
    """
    if distance <= 0.0:
        return posterior
    heavy = posterior.weights > _NEGLIGIBLE * posterior.weights.max()
    rates, slopes, scatters, exponents, weights = (
        values[heavy]
        for values in (
            posterior.log_rates,
            posterior.slopes,
            posterior.scatters,
            posterior.exponents,
            posterior.weights,
        )
    )
    errors = _ERRORS[:, None] * (exponents > EVEN)
    spread = (_SHARES[:, None] * weights).ravel()
    return replace(
        posterior,
        log_rates=(rates + errors * distance).ravel(),
        slopes=np.tile(slopes, len(_NODES)),
        scatters=np.tile(scatters, len(_NODES)),
        weights=spread / spread.sum(),
        exponents=(exponents + errors).ravel(),
    )
