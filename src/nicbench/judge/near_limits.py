"""Values of a result so near to the tester's own limits that they may be the tester's: said in the result itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nicbench.model.rate import Bounded
from nicbench.model.result import NearLimit, Result

NEAR_CEILING: Final = 0.95
NEAR_LATENCY: Final = 2.0

_CEILING: Final = "ceiling_frames_per_s"
_OWN_LATENCY: Final = "tester_latency_p50_ns"
_LATENCY: Final = "latency_p50_ns"


def with_near_limits(result: Result) -> Result:
    """The result with what is to be said of it; it says "none" where nothing is."""
    return result.model_copy(update={"near_tester_limit": tuple(_near_limits(result))})


def _near_limits(result: Result) -> Iterator[NearLimit]:
    ceiling, own = _number(result, _CEILING), _number(result, _OWN_LATENCY)
    for name, rate in result.values.items():
        known = rate.value if isinstance(rate, Bounded) and name.endswith("_frames_per_s") else None
        if ceiling and known is not None and known >= NEAR_CEILING * ceiling:
            share = f"{100.0 * known / ceiling:.0f} % of what the tester sends without a DUT ({ceiling / 1e6:.4g} Mpps)"
            text = f"{known / 1e6:.4g} Mpps are {share}; the DUT may do more"
            yield NearLimit(value=name, limit=_CEILING, text=text)
    median = _number(result, _LATENCY)
    if own and median is not None and median < NEAR_LATENCY * own:
        less = f"less than twice the tester's own ({own / 1e3:.3g} us)"
        text = f"the median of {median / 1e3:.3g} us is {less}; most of it is not the DUT's"
        yield NearLimit(value=_LATENCY, limit=_OWN_LATENCY, text=text)


def _number(result: Result, name: str) -> float | None:
    value = result.values.get(name)
    return value if isinstance(value, int | float) else None
