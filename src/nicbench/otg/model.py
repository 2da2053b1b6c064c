"""Errors of refused messages: every problem with the path of its field, and OTG's code."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, Final, Literal

import snappi.snappi as classes
from pydantic_core import from_json

from nicbench.core.errors import NicbenchError

INVALID: Final = 400
"""The message is wrong in itself."""
NOT_IMPLEMENTED: Final = 501
"""The message is right, and asks for what this server does not do."""
MOST_ERRORS: Final = 100
"""The number of problems reported of one message; a configuration of 4096 flows may have one in each."""
MOST_VALUES_OF_FLOW: Final = 2**20
MOST_VALUES: Final = 2**22
"""Values of all lists and random patterns of a configuration: the engine keeps each in 16 bytes."""


class OtgError(NicbenchError):
    """An error with the answer ``{code, kind, errors}``; ``code`` is also the HTTP status."""

    exit_status = 2

    def __init__(self, errors: list[str], *, code: int = INVALID) -> None:
        super().__init__("; ".join(errors))
        self.errors = errors
        self.code = code

    @property
    def kind(self) -> Literal["validation", "internal"]:
        """OTG's kind of the error: ``validation`` if the client can correct it."""
        return "validation" if self.code == INVALID else "internal"


class Problems:
    """Collects the problems of one message, so that all are reported at once, and counts the values that it lists."""

    def __init__(self) -> None:
        self._errors: list[str] = []
        self.warnings: list[str] = []
        self._code = NOT_IMPLEMENTED
        self._hidden = 0
        self._values = 0
        self._values_of_flow = 0

    def begin_flow(self) -> None:
        """Called before a flow is read: counts its lists."""
        self._values_of_flow = 0

    def has_room(self, path: str, values: int) -> bool:
        """Counts values that are to be kept one by one; False, with the problem told, where they are too many."""
        if self._values_of_flow + values > MOST_VALUES_OF_FLOW:
            self.invalid(path, f"the flow lists more than {MOST_VALUES_OF_FLOW} values: use increments")
        elif self._values + values > MOST_VALUES:
            self.invalid(path, f"the configuration lists more than {MOST_VALUES} values: use increments")
        else:
            self._values += values
            self._values_of_flow += values
            return True
        return False

    def invalid(self, path: str, message: str) -> None:
        """Adds a problem that the client can correct."""
        self._code = INVALID
        self._add(path, message)

    def not_implemented(self, path: str, message: str) -> None:
        """Adds a problem of something that this server does not implement."""
        self._add(path, message)

    def warn(self, path: str, message: str) -> None:
        """Adds a warning that the client gets something else than it asked for."""
        if len(self.warnings) < MOST_ERRORS:
            self.warnings.append(f"{path}: {message}")

    def raise_any(self) -> None:
        """Raises OtgError where there is a problem; its code is 501 only where nothing else is wrong."""
        if self._errors:
            hidden = [f"... and {self._hidden} more problems"] if self._hidden else []
            raise OtgError(self._errors + hidden, code=self._code)

    def _add(self, path: str, message: str) -> None:
        if len(self._errors) < MOST_ERRORS:
            self._errors.append(f"{path}: {message}")
        else:
            self._hidden += 1


_LIST: Final = "Iter"
_MAC: Final = re.compile(r"[0-9a-fA-F]{1,2}(:[0-9a-fA-F]{1,2}){5}")
_HEX: Final = re.compile(r"(0[xX])?[0-9a-fA-F]+")
_RANGES: Final = {
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}

MOST_ELEMENTS: Final = MOST_VALUES + 2**20
"""Of one message: values of flows, and what is around them."""
MOST_PARTS: Final = 2**19
"""Lists and objects of one message, which take far more memory than their text: a hundred for each of 4096 flows."""
Check = Callable[[Any, str, Problems], None]


def parse_message(body: bytes) -> Mapping[str, Any]:
    """Reads a message from JSON. Members that are null are left out, for protobuf's JSON has them so where a field is
    not set. OtgError where the text is not a JSON object, or has more elements than any configuration.
    """
    # Each element but the first of its list or object has a comma before it.
    for marks, most, what in ((b",", MOST_ELEMENTS, "elements"), (b"[{", MOST_PARTS, "lists and objects")):
        if sum(body.count(mark) for mark in marks) > most:
            raise OtgError([f"the body has more than {most} {what}"])
    try:
        message = from_json(body)
    except ValueError as error:
        raise OtgError([f"the body is no JSON: {error}"]) from error
    if not isinstance(message, Mapping):
        raise OtgError(["the body is no JSON object"])
    plain: Mapping[str, Any] = _without_nulls(message)
    return plain


def _without_nulls(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _without_nulls(value) for name, value in part.items() if value is not None}
    return [_without_nulls(item) for item in part] if isinstance(part, list) else part


def check_message(kind: str, message: Any, path: str, problems: Problems) -> None:
    """Reports every problem of a message of this class of the model."""
    if not isinstance(message, Mapping):
        problems.invalid(path, f"is {_type_of(message)}, not an object")
        return
    members, required = _members(kind)
    for name, value in message.items():
        check = members.get(name)
        if check is None:
            problems.invalid(f"{path}.{name}" if path else name, _no_member(name, kind, members))
        else:
            check(value, f"{path}.{name}" if path else name, problems)
    for name in required:
        if name not in message:
            problems.invalid(f"{path}.{name}" if path else name, "is missing")


def _no_member(name: str, kind: str, members: Iterable[str]) -> str:
    """Says that a class of the model has no member of this name, and which is meant, or which there are."""
    near = get_close_matches(name, members, n=1)
    which = f"{near[0]!r} is" if near else f"its members are {', '.join(sorted(members))}"
    return f"is no member of {kind}; {which}"


@cache
def _members(kind: str) -> tuple[Mapping[str, Check], tuple[str, ...]]:
    """How each member of a class is checked, and those that it must have."""
    described = getattr(classes, kind)
    return {name: _check_of(spec) for name, spec in described._TYPES.items()}, tuple(described._REQUIRED)


def _check_of(spec: Mapping[str, Any]) -> Check:
    kind = spec["type"]
    if isinstance(kind, str):
        if not kind.endswith(_LIST):
            return lambda value, path, problems: check_message(kind, value, path, problems)
        item = kind.removesuffix(_LIST)
        return _list_of(lambda value, path, problems: check_message(item, value, path, problems))
    if kind is list:
        return _list_of(_scalar({**spec, "type": spec.get("itemtype", str), "format": spec.get("itemformat")}))
    return _scalar(spec)


def _list_of(check: Check) -> Check:
    def check_all(value: Any, path: str, problems: Problems) -> None:
        if not isinstance(value, list):
            problems.invalid(path, f"is {_type_of(value)}, not a list")
            return
        for index, item in enumerate(value):
            check(item, f"{path}[{index}]", problems)

    return check_all


def _scalar(spec: Mapping[str, Any]) -> Check:
    kind = spec["type"]
    if kind is bool:
        return lambda value, path, problems: _require(isinstance(value, bool), value, "true or false", path, problems)
    if kind in (int, float):
        return _number(spec)
    return _text(spec)


def _number(spec: Mapping[str, Any]) -> Check:
    """A number; one of 64 bits may be a text, as JSON of protobuf has it."""
    low, high = _RANGES.get(spec.get("format") or "", (None, None))
    low, high = spec.get("minimum", low), spec.get("maximum", high)
    whole = spec["type"] is int

    def check(value: Any, path: str, problems: Problems) -> None:
        try:
            number = int(value) if whole else float(value)
        except (TypeError, ValueError, OverflowError):
            number = None
        if number is None or isinstance(value, bool) or (whole and isinstance(value, float) and number != value):
            _require(False, value, "a whole number" if whole else "a number", path, problems)
        elif number != number or (low is not None and number < low) or (high is not None and number > high):
            limits = " and ".join(
                words for words, limit in ((f"at least {low}", low), (f"at most {high}", high)) if limit is not None
            )
            problems.invalid(path, f"is {str(value)[:40]}; it must be {limits or 'a number'}")

    return check


def _text(spec: Mapping[str, Any]) -> Check:
    enum, form = spec.get("enum"), str(spec.get("format"))
    pattern = re.compile(spec["pattern"]) if "pattern" in spec else None
    shortest, longest = spec.get("minLength", 0), spec.get("maxLength")

    def check(value: Any, path: str, problems: Problems) -> None:
        if not isinstance(value, str):
            _require(False, value, "a text", path, problems)
        elif enum is not None and value not in enum:
            problems.invalid(path, f"is {value[:40]!r}; known: {', '.join(enum)}")
        elif form in _FORMATS and not _FORMATS[form](value):
            _require(False, value, _WORDS[form], path, problems)
        elif (pattern is not None and not pattern.match(value)) or len(value) < shortest:
            _require(False, value, "as the model wants it", path, problems)
        elif longest is not None and len(value) > longest:
            problems.invalid(path, f"has {len(value)} characters, of at most {longest}")

    return check


def _is_address(kind: type[ipaddress.IPv4Address] | type[ipaddress.IPv6Address]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            kind(text)
        except ValueError:
            return False
        return True

    return check


_FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "ipv4": _is_address(ipaddress.IPv4Address),
    "ipv6": _is_address(ipaddress.IPv6Address),
    "hex": lambda text: _HEX.fullmatch(text) is not None,
}
_WORDS: Final = {
    "mac": "a MAC address",
    "ipv4": "an IPv4 address",
    "ipv6": "an IPv6 address",
    "hex": "a hexadecimal number",
}


def _require(holds: bool, value: Any, words: str, path: str, problems: Problems) -> None:
    if not holds:
        problems.invalid(path, f"is {str(value)[:40]!r}, not {words}")


def _type_of(value: Any) -> str:
    return {list: "a list", dict: "an object", str: "a text", bool: "true or false"}.get(type(value), "a number")
