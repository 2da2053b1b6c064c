"""Gamma and error functions of arrays, which NumPy lacks; tests compare with SciPy's."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def log_gamma(x: Numbers) -> Numbers:
    """Returns the logarithm of the gamma function of numbers above 0, by Stirling's series (DLMF 5.11.1)."""
    near = x < 8.0
    far = np.where(near, x + 8.0, x)
    inverse = 1.0 / (far * far)
    series = 1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680 - inverse * (1 / 1188))))
    found = np.asarray((far - 0.5) * np.log(far) - far + 0.5 * math.log(2.0 * math.pi) + series / far)
    if near.any():
        small = x[near]
        found[near] -= np.log(math.prod(small + more for more in range(8)))
    return found


def scaled_erfc(x: Numbers) -> Numbers:
    """Returns exp(x²) erfc(x) of numbers from 0 on, by a Chebyshev series of its logarithm."""
    t = 2.0 / (2.0 + x)
    return np.asarray(t * np.exp(np.polynomial.chebyshev.chebval(2.0 * t - 1.0, _SCALED_ERFC)))


def erfc(x: Numbers) -> Numbers:
    """Returns the complementary error function."""
    right = np.exp(-np.square(x)) * scaled_erfc(np.abs(x))
    return np.asarray(np.where(x < 0.0, 2.0 - right, right))


_SCALED_ERFC = (
    *(-0.651326859890854717, 0.64196979235649026, 0.0194764732041858363, -0.00956151478680863164),
    *(-9.46595344482036866e-4, 3.66839497852761452e-4, 4.25233248069077716e-5, -2.02785781125342432e-5),
    *(-1.62429000464702551e-6, 1.3036558355805232e-6, 1.56264417220661432e-8, -8.52380959149265425e-8),
    *(6.5290544390988515e-9, 5.05934349555146894e-9, -9.91364156493033087e-10, -2.27365122293183586e-10),
    *(9.6467911020155268e-11, 2.39403808303911474e-12, -6.8860275264975534e-12, 8.94487927309072572e-13),
    *(3.13092139934295808e-13, -1.12708223613672524e-13, 3.81090525518923206e-16, 7.10609761360923699e-15),
    *(-1.5230282014571043e-15, -9.457494571291234e-17, 1.21023718922427899e-16, -2.81666308774717697e-17),
)
"""log(exp(x²) erfc(x) / t) in Chebyshev polynomials of 2 t - 1, where t = 2 / (2 + x)."""
