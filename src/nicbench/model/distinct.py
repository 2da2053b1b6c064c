"""Lists whose values are different: a point that is named twice would be measured twice, under one name."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import AfterValidator

Item = TypeVar("Item")


def _each_once(values: tuple[Item, ...]) -> tuple[Item, ...]:
    twice = next((value for number, value in enumerate(values) if value in values[:number]), None)
    if twice is not None:
        raise ValueError(f"`{twice}` is named twice; write it once, and `runs` to measure it more often")
    return values


Distinct = Annotated[tuple[Item, ...], AfterValidator(_each_once)]
"""``Distinct[int]`` is a tuple of whole numbers, each of them once."""
