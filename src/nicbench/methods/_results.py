"""A result for each frame size: the loop over the sizes, and what every such result has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from nicbench.methods._returned import Values
from nicbench.methods.base import Context, FrameMethod
from nicbench.model.frame_size import Size, size_label, size_parameters
from nicbench.model.result import Result, ResultVerdict

PER_PORT = "per port"


async def each_size(
    context: Context, written: Iterable[int | str], at: Callable[[Context, Size], Awaitable[Result]]
) -> tuple[Result, ...]:
    """``at`` of each frame size of a test's options, each made known as soon as it is there."""
    results = []
    for size in context.sizes(written):
        result = await at(context, size)
        context.publish(result)
        results.append(result)
    return tuple(results)


def result_at(
    method: FrameMethod,
    size: Size,
    values: Values,
    verdict: ResultVerdict,
    *,
    trials: Iterable[str] = (),
    disturbances: Iterable[str] = (),
    parameters: Mapping[str, Any] | None = None,
    point: str | None = None,
    scope: str = PER_PORT,
) -> Result:
    """The result of a frame size, or of a ``point`` of it; a disturbance that came several times is said once."""
    label = size_label(size)
    return Result(
        id="/".join((method.name, label, *(() if point is None else (point,)))),
        method=method.kind,
        scope=scope,
        parameters={**size_parameters(size), "size": label, **(parameters or {})},
        values=values,
        verdict=verdict,
        disturbances=tuple(dict.fromkeys(disturbances)),
        trials=tuple(trials),
    )
