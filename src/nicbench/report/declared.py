"""What facts and options say of themselves where they are declared, by their kind: for a report of plain data.

The declarations are looked up, nothing of a host is touched. A kind that this version does not know has none.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from nicbench.core.described import NOTHING, Described, Shape, shape_of
from nicbench.core.plan import Plan
from nicbench.core.registry import find, find_one
from nicbench.core.traffic import Traffic

Shapes = Mapping[str, Shape]

_FACTS: Final = "nicbench.system.inventory.facts"
_METHODS: Final = "nicbench.methods"
_ITEMS: Final = "nicbench.tuning.items"
_LABS: Final = "nicbench.testbed.labs"
_DUTS: Final = "nicbench.testbed.duts"
_TESTERS: Final = "nicbench.testbed.testers"


@functools.cache
def inventory_shapes() -> Shapes:
    """The shape of each fact of inventory.json."""
    return MappingProxyType({kind: shape_of(fact.shape) for kind, fact in find(_FACTS, Described).items()})


def method_shapes(kind: str) -> Shapes:
    """The options of a method."""
    return _options(_METHODS, kind)


def item_shapes(kind: str) -> Shapes:
    """The values of a tuning item."""
    return _options(_ITEMS, kind)


def lab_shapes(plan: Plan) -> Shapes:
    """The options of the plan's lab."""
    return _of_choice(_LABS, plan.lab)


def dut_shapes(plan: Plan) -> Shapes:
    """The options of the plan's DUT."""
    return _of_choice(_DUTS, plan.dut)


def tester_shapes(plan: Plan) -> Shapes:
    """The options of the plan's tester, which it discloses under ``options``."""
    options = Shape(label="Options, as asked for", fields=_of_choice(_TESTERS, plan.tester))
    return MappingProxyType({**options.fields, "options": options})


@functools.cache
def traffic_shapes() -> Shapes:
    """The section ``traffic``, of which the plan has streams by their names."""
    fields = shape_of(Traffic).fields
    return MappingProxyType({**fields, "streams": Shape(entries=fields["streams"])})


def with_kind(shape: Shape, value: Mapping[str, Any]) -> Shape:
    """Of a choice among plug-ins: with the options of the one that was chosen."""
    kind = value.get("kind")
    if shape.plugins is None or not isinstance(kind, str):
        return shape
    return replace(shape, fields={**_options(shape.plugins, kind), **shape.fields})


def _of_choice(package: str, chosen: Mapping[str, Any] | None) -> Shapes:
    kind = (chosen or {}).get("kind")
    return _options(package, kind) if isinstance(kind, str) else NOTHING.fields


@functools.cache
def _options(package: str, kind: str) -> Shapes:
    found = find_one(package, Described, kind)
    return NOTHING.fields if found is None else shape_of(found.Options).fields
