"""Axes: what a study varies, each with its values by name. Every combination is a configuration of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

Axes = Mapping[str, Sequence[str]]
"""The values of each axis by name, in the order of the bench file; empty where nothing is varied."""


def combinations(axes: Axes) -> Iterator[dict[str, str]]:
    """Yields the value of each axis in every combination; the last axis varies fastest."""
    for values in product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def combination_name(chosen: Mapping[str, str]) -> str:
    """Returns the name of a combination's configuration: "queues-4_cores-2"."""
    return "_".join(f"{axis}-{value}" for axis, value in chosen.items())
