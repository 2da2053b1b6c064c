"""The base of every frozen model, and the option types that several plug-ins share."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator


class Frozen(BaseModel):
    """Base of immutable records. An unknown value is ``None``, never zero.

    The validator of a model is built when the model is first used, because a command loads many models and uses few.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    def replace(self, **changes: Any) -> Self:
        """Returns a copy with other values in some fields. TypeError for a name that is not a field.

        mypy checks names and types of fields at each call (``scripts/replace_plugin.py``).
        """
        fields = type(self).__pydantic_fields__
        unknown = changes.keys() - fields.keys()
        if unknown and self.model_config.get("extra") != "allow":
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        copy = self.model_copy(update=changes)
        if len(vars(copy)) > len(fields):  # what the original has cached holds of the original
            for name in vars(copy).keys() - fields.keys():
                del vars(copy)[name]
        return copy


Part = TypeVar("Part", bound=Frozen | tuple[Any, ...])


def change_parts(whole: Part, change: Callable[[str, Any], Any]) -> Part:
    """Returns a model, or a tuple, with ``change(name, part)`` in place of each part; itself where no part changes."""
    if isinstance(whole, tuple):
        parts = tuple(change("", part) for part in whole)
        return whole if all(map(operator.is_, parts, whole)) else parts  # type: ignore[return-value]
    changes = {name: new for name, part in vars(whole).items() if (new := change(name, part)) is not part}
    return whole.replace(**changes) if changes else whole


def optional(default: Any) -> Any:
    """Returns the default of a field that is left out of JSON wherever it has this value."""
    return Field(default=default, exclude_if=partial(operator.is_ if default is None else operator.eq, default))


def why_of(details: Mapping[str, Any]) -> str:
    """The reason in one of a ValidationError's ``errors()``, without the kind of exception that pydantic puts first."""
    return re.sub(r"^(Value|Assertion) error, ", "", str(details["msg"]))


# Lists of distinct values: a point that is named twice would be measured twice under one name.


Item = TypeVar("Item")


def _refuse_duplicates(values: tuple[Item, ...]) -> tuple[Item, ...]:
    twice = next((value for number, value in enumerate(values) if value in values[:number]), None)
    if twice is not None:
        raise ValueError(f"`{twice}` is named twice; write it once, and `runs` to measure it more often")
    return values


Distinct = Annotated[tuple[Item, ...], Field(min_length=1), AfterValidator(_refuse_duplicates)]
"""``Distinct[int]`` is a tuple of one integer at least, without duplicates."""


# The choice of a plug-in: ``KEY: iperf3``, or ``KEY: {kind: iperf3, ...}`` with options that its plug-in knows.


class Choice(Frozen):
    """A choice of a plug-in: its kind, and its options as plain data."""

    model_config = ConfigDict(extra="allow")

    kind: str
    """The kind of plug-in. A kind without options may stand alone."""

    @model_validator(mode="before")
    @classmethod
    def _kind_alone(cls, value: Any) -> Any:
        return {"kind": value} if isinstance(value, str) else value

    @property
    def options(self) -> dict[str, Any]:
        """The options of the plug-in, without its kind."""
        return dict(self.model_extra or {})


# The choice of the tool of a test: ``workload: iperf3`` or ``workload: {kind: iperf3, ...}``.


class WorkloadChoice(Choice):
    """The choice of a workload's tool with its options, which ``workloads/`` validates."""

    plugins: ClassVar[str] = "nicbench.workloads.tools"
