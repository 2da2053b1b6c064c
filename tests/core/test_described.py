"""Units and labels stand where a fact or an option is declared, and contradict no name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, TypedDict

import pytest

from nicbench.core.base import Frozen
from nicbench.core.described import DescribedPlugin, Label, NotEverywhere, OneLine, Shape, Unit, shape_of, words_of
from nicbench.core.quantity import Ratio, Seconds
from nicbench.core.registry import find

PACKAGES = (
    *("nicbench.methods", "nicbench.search", "nicbench.workloads.tools", "nicbench.tuning.items"),
    *("nicbench.testbed.labs", "nicbench.testbed.duts", "nicbench.testbed.testers", "nicbench.testbed.shares"),
)


class _Part(TypedDict):
    name: str
    size_bytes: int | None


class _Whole(TypedDict):
    parts: list[_Part]
    by_port: Annotated[dict[str, Annotated[int, NotEverywhere]], OneLine()]
    clock: Annotated[int | None, Label("Core clock", alone=True), Unit.HERTZ]


class _Options(Frozen):
    duration: Seconds = 1.0
    shares: tuple[Ratio, ...] = ()
    goals: dict[str, Ratio] | None = None


def test_a_shape_says_what_the_types_and_notes_say() -> None:
    fields = shape_of(_Whole).fields

    assert fields["parts"].fields["size_bytes"].unit is Unit.BYTES
    assert fields["by_port"].entries == Shape(is_everywhere=False)
    assert fields["by_port"].one_line == OneLine()
    assert fields["clock"] == Shape(label="Core clock", is_alone=True, unit=Unit.HERTZ)


def test_a_quantity_of_an_option_knows_its_unit() -> None:
    fields = shape_of(_Options).fields

    assert (fields["duration"].unit, fields["shares"].unit) == (Unit.SECONDS, Unit.RATIO)
    assert fields["goals"].entries == Shape(unit=Unit.RATIO)


@pytest.mark.parametrize(
    ("name", "unit"),
    [("rate_frames_per_s", Unit.FRAMES_PER_S), ("s", Unit.SECONDS), ("cpus", None), ("status", None)],
)
def test_a_name_ends_with_its_unit(name: str, unit: Unit | None) -> None:
    assert Unit.of_name(name) is unit


def test_a_name_in_words_is_without_its_unit() -> None:
    assert words_of("receive_irq_time_us") == "Receive IRQ time"


def test_no_declared_unit_contradicts_the_name() -> None:
    facts = find("nicbench.system.inventory.facts", DescribedPlugin).values()
    shapes: list[tuple[str, Any]] = [(fact.kind, fact.shape) for fact in facts]
    shapes += [(each.kind, each.Options) for package in PACKAGES for each in find(package, DescribedPlugin).values()]
    wrong = [
        path
        for kind, declared in shapes
        for path, name, shape in _fields(shape_of(declared), kind)
        if Unit.of_name(name) not in (None, shape.unit) and not (name.endswith("_share") and shape.unit is Unit.RATIO)
    ]

    assert len(shapes) > 100
    assert wrong == []


def test_every_fact_says_what_it_is() -> None:
    assert [
        kind for kind, fact in find("nicbench.system.inventory.facts", DescribedPlugin).items() if fact.shape is None
    ] == []


def _fields(shape: Shape, above: str) -> Iterator[tuple[str, str, Shape]]:
    for name, part in shape.fields.items():
        yield f"{above}.{name}", name, part
        yield from _fields(part, f"{above}.{name}")
    if shape.entries is not None:
        yield from _fields(shape.entries, f"{above}[]")
