"""What newcomers, and other programs, call the keys of a bench file: an unknown key leads to the one that is meant."""

from __future__ import annotations

import inspect
import json
import math
import re
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from nicbench.bench_file.reader import Node
from nicbench.core.base import Frozen, why_of
from nicbench.core.described import Unit
from nicbench.core.errors import Problem, nearest_name, quote, suggest
from nicbench.core.quantity import UNITS_REQUIRED
from nicbench.core.registry import find
from nicbench.core.units import format_bits_per_s, format_digits, format_duration_s, format_rate

_MEANT: Final = MappingProxyType(
    {
        "pci": ("address",),
        "pci_address": ("address",),
        "bdf": ("address",),
        "slot": ("address",),
        "interface": ("device",),
        "iface": ("device",),
        "netdev": ("device",),
        "nic": ("device",),
        "ifname": ("device",),
        "dev": ("device",),
        "ip_address": ("ip",),
        "addr": ("ip", "address"),
        "type": ("kind", "method"),
        "machine": ("host",),
        "packet_size": ("frame_bytes",),
        "packet_sizes": ("frame_bytes",),
        "pkt_size": ("frame_bytes",),
        "size": ("frame_bytes", "frame_size", "message_bytes"),
        "sizes": ("frame_bytes", "message_bytes"),
        "frame_size": ("frame_bytes",),
        "frame_sizes": ("frame_bytes",),
        "frame_length": ("frame_bytes",),
        "tool": ("workload",),
        "editors": ("instances",),
        "clients": ("instances",),
        "fps": ("frames_per_s",),
        "time": ("duration",),
        "seconds": ("duration",),
        "repeat": ("repetitions", "runs"),
        "parallel": ("streams",),
        "loss": ("goals",),
        "server": ("dut",),
        "device_under_test": ("dut",),
        "cables": ("links",),
        "generator": ("tester",),
        "topology": ("lab", "links"),
    }
)


def meant_by(given: str, known: Collection[str]) -> str | None:
    """The key that is called ``given`` elsewhere; None for an unknown name, or a key that the section does not have."""
    asked = given.lower().replace("-", "_").replace(" ", "_")
    if asked in known:
        return asked
    return next((key for key in _MEANT.get(asked, ()) if key in known), None)


Step = str | int

_EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "bool": "`true` or `false`",
    "string": "text",
    "tuple": "a list",
    "list": "a list",
    "set": "a list",
    "dict": "keys and values",
    "model": "keys and values",
    "model_attributes": "keys and values",
    "none_required": "nothing",
}

_EXAMPLES = {
    "nicbench": "1",
    "title": "My first run",
    "dut": "{kind: kernel-forward}",
    "tests": "[{name: throughput, method: throughput}]`, or let programs send by `nicbench serve FILE",
    "name": "throughput",
    "at": "throughput`, the name of a test with the method `throughput` above it; where there is none, add "
    "`- {name: throughput, method: throughput}",
    "share": "sftp",
    "hosts.address": "10.0.0.5`, or an alias of `~/.ssh/config",
    "ports.address": "0000:03:00.0",
}
"""Values of keys that a file cannot do without, and of some whose form is not obvious; of a key of one section only,
with its name.
"""

_BOUNDS = {
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "multiple_of": "a multiple of {multiple_of}",
}

_WRITTEN: Mapping[Unit | None, Callable[[float], str]] = {
    Unit.RATIO: lambda ratio: f"{format_digits(100.0 * ratio, 6)} %",
    Unit.PERCENT: lambda percent: f"{percent:g} %",
    Unit.SECONDS: format_duration_s,
    Unit.FRAMES_PER_S: format_rate,
    Unit.BITS_PER_S: format_bits_per_s,
}
_DECIMALS = re.compile(r"[0-9]+(?: ?[%A-Za-z/]{1,7})?")


def list_problems(
    error: ValidationError, root: Node, path: Sequence[Step], model: type[BaseModel], further_keys: Sequence[str] = ()
) -> list[Problem]:
    """One problem for each wrong node; of a union's several errors only the first is reported.

    ``path`` is where the validated section stands in the file, ``further_keys`` names its keys other than the model's.
    """
    found = {}
    all_details = error.errors(include_url=False)
    for details in all_details:
        if details["type"] == "too_short" and _is_inside(details["loc"], all_details):
            continue  # pydantic counts only the good items of a list
        if details["type"] == "default_factory_not_called":
            continue  # a default that depends on other keys, one of which is wrong
        location = (*path, *details["loc"])
        about_a_key = details["type"] in ("missing", "extra_forbidden")
        node = root.find(location[:-1] if about_a_key else location)
        same = (id(node), location[-1] if about_a_key else None)
        if same not in found:
            within = _model_at(model, details["loc"][:-1])
            known = _keys_of(within) + list(further_keys if len(details["loc"]) == 1 else ())
            found[same] = _problem(details, root, location, known, _unit_of(model, details["loc"]))
    return list(found.values())


def _is_inside(location: tuple[Step, ...], others: Sequence[ErrorDetails]) -> bool:
    """Whether one of the other errors lies below ``location``."""
    depth = len(location)
    return any(other["loc"][:depth] == location and len(other["loc"]) > depth for other in others)


def _unit_of(model: type[BaseModel], location: Sequence[Step]) -> Unit | None:
    """The unit of the value at ``location``, which may be one of a list; None where none is declared."""
    names = [number for number, step in enumerate(location) if isinstance(step, str)]
    if not names:
        return None
    within = _model_at(model, location[: names[-1]])
    annotation = within.model_fields.get(str(location[names[-1]])) if within is not None else None
    return None if annotation is None else _unit_in((annotation.annotation, *annotation.metadata))


def _unit_in(parts: Iterable[Any]) -> Unit | None:
    for part in parts:
        found = part if isinstance(part, Unit) else _unit_in(typing.get_args(part))
        if found is not None:
            return found
    return None


def _problem(
    details: ErrorDetails, root: Node, location: tuple[Step, ...], known: Sequence[str], unit: Unit | None
) -> Problem:
    name = quote(_to_path_text(root, location))
    context = details.get("ctx", {})
    kind = details["type"]
    if kind == "missing":
        key = str(location[-1])
        example = "{kind: simulated}" if key == "dut" and _is_simulated(root) else _example_of(location) or "..."
        step = f"add `{key}: {example}`"
        return Problem(root.position_of(location[:-1]), f"{name} is missing", step)
    if kind == "extra_forbidden":
        keys = context.get("known", known)
        meant = meant_by(str(location[-1]), keys)
        step = f"did you mean `{meant}`?" if meant is not None else suggest(str(location[-1]), keys)
        step = _explain_comma(root.find(location[:-1]), str(location[-1])) or step
        return Problem(root.position_of_key(location), f"unknown key {name}", step)
    message, next_step = _message(kind, name, details, context, unit)
    # A key without a value has its value on the next line, for YAML.
    position = root.position_of_key(location) if details["input"] is None else root.position_of(location)
    return Problem(position, message, next_step)


def _example_of(path: Sequence[Step]) -> str | None:
    """Returns a value of the key at the path; None without an example."""
    return _EXAMPLES.get(f"{path[0]}.{path[-1]}", _EXAMPLES.get(str(path[-1])))


def _is_simulated(root: Node) -> bool:
    lab = root.child("lab")
    kind = lab.child("kind") if lab is not None and lab.entries is not None else lab
    return kind is not None and kind.value == "simulated"


def _explain_comma(node: Node, key: str) -> str | None:
    """Explains a decimal comma, which ends a value in braces: ``{precision: 0,5 %}`` has a key ``5 %``."""
    keys = list(node.entries or ())
    if not _DECIMALS.fullmatch(key) or key not in keys[1:]:
        return None
    before = keys[keys.index(key) - 1]
    whole = node.entries[before].value if node.entries is not None else None
    return f"write a decimal point: `{before}: {whole}.{key}`" if isinstance(whole, int) else None


def _message(
    kind: str, name: str, details: ErrorDetails, context: dict[str, Any], unit: Unit | None
) -> tuple[str, str | None]:
    """What is wrong with a value, and what to write instead."""
    given = _describe_value(details["input"])
    if kind == "quantity":
        return f"{name}: {context['why']}", f"write {context['accepted']}"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        key = str(context["discriminator"]).strip("'")
        if kind == "union_tag_not_found":
            return f"{name} has no {key}", f"add `{key}: ...`"
        tags = str(context["expected_tags"]).replace("'", "`")
        return f"{name}: there is no {key} {quote(context['tag'])}", f"write {tags}"
    if kind == "literal_error" and name == "`nicbench`" and isinstance(details["input"], int):
        step = f"write {context['expected']}, or install a newer nicbench"
        return f"this nicbench does not know the format {given} of bench files", step
    if kind in ("literal_error", "enum"):
        return f"{name} cannot be {given}", f"write {context['expected']}"
    if kind in _BOUNDS:
        numbers = {
            key: _write_number(value, unit) if isinstance(value, float) else value for key, value in context.items()
        }
        bound = _BOUNDS[kind].format(**numbers)
        if unit in _WRITTEN and isinstance(details["input"], int | float):
            given = _write_number(float(details["input"]), unit)
        return f"{name} is {given}: it must be {bound}", f"write a value that is {bound}"
    if kind in ("value_error", "assertion_error"):
        return f"{name}: {context.get('error', why_of(details))}", None
    if kind in ("too_short", "string_too_short"):
        least = context.get("min_length", 1)
        return f"{name} is {'empty' if not details['input'] else 'too short'}", f"write at least {least}"
    if kind in ("too_long", "string_too_long"):
        return f"{name} is too long", f"write at most {context['max_length']}"
    if kind == "string_pattern_mismatch":
        example = _example_of(name.strip("`").split("."))
        form = f"write it like `{example}`" if example is not None else f"it must match {context['pattern']}"
        return f"{name} cannot be {given}", form
    if kind == "float_type" and (percent := _share_of(details["input"])) is not None:
        return f"{name} must be a number, not {given}", f"write {percent:g}"
    if kind == "tuple_type" and isinstance(details["input"], str | int | float):
        return f"{name} must be a list, not {given}", f"write `[{details['input']}]`"
    base = kind.removesuffix("_parsing").removesuffix("_type").removesuffix("_from_float")
    if base == "tuple" and isinstance(details["input"], dict):
        return f"{name} must be a list, not {given}", "begin each entry with `- `"
    if _EXPECTED.get(base) == "keys and values" and isinstance(details["input"], list):
        return f"{name} must be keys and values, not {given}", "write `KEY: VALUE` without a `-` before it"
    if base == "string" and not isinstance(details["input"], list | tuple | dict):
        return f"{name} must be text, not {given}", "write it in quotes"
    if base in _EXPECTED:
        return f"{name} must be {_EXPECTED[base]}, not {given}", f"write {_EXPECTED[base]}"
    return f"{name}: {why_of(details)}", None


def _write_number(number: float, unit: Unit | None) -> str:
    """Writes a number as a bench file has it, with its unit."""
    return _WRITTEN[unit](number) if unit in _WRITTEN and math.isfinite(number) else f"{number:g}"


def _share_of(value: object) -> float | None:
    """The number that a percentage stands for; None of anything else."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?%", value) if isinstance(value, str) else None
    return float(match[1]) / 100 if match else None


def _describe_value(value: object) -> str:
    if isinstance(value, list | tuple):
        return "a list"
    return "keys and values" if isinstance(value, dict) else quote(value)


def _to_path_text(root: Node, location: Sequence[Step]) -> str:
    """``tests[1].trial.duration``, without the steps that only pydantic knows (a union's branch)."""
    text = ""
    node = root
    for number, step in enumerate(location):
        child = node.child(step)
        if child is None and number < len(location) - 1:
            continue
        if child is None and node.entries is None:
            continue
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
        node = child or node
    return text


def _keys_of(model: type[BaseModel] | None) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()] if model else []


def _model_at(model: type[BaseModel] | None, location: Sequence[Step]) -> type[BaseModel] | None:
    """The model that reads the node at ``location``, for the names of its keys; None where it is not known.

    A step that is not a field is a key of a mapping, or names the branch of a union, by the model or by its `kind`.
    """
    models = [] if model is None else [model]
    for step in location:
        branches = [candidate for candidate in models if step in (candidate.__name__, _tag_of(candidate))]
        if branches:
            models = branches
            continue
        fields = [candidate.model_fields[step] for candidate in models if step in candidate.model_fields]
        if fields:
            models = [found for field in fields for found in _models_in(field.annotation)]
    return models[0] if models else None


def _tag_of(model: type[BaseModel]) -> str | None:
    """The only `kind` that a branch of a union takes; None where it takes several or has none."""
    kinds = typing.get_args(model.model_fields["kind"].annotation) if "kind" in model.model_fields else ()
    return kinds[0] if len(kinds) == 1 and isinstance(kinds[0], str) else None


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in typing.get_args(annotation) for model in _models_in(part)]


Model = TypeVar("Model", bound=BaseModel)


class Reading:
    """The reading of one bench file: its tree, and the problems found so far."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.problems: list[Problem] = []

    def validate(
        self, model: type[Model], content: Mapping[str, Any], path: tuple[Step, ...], further_keys: Iterable[str] = ()
    ) -> Model | None:
        """Validates ``content``, found at ``path``, as ``model``; None after noting the problems.

        ``further_keys`` lists keys of the section that ``content`` leaves out.
        """
        try:
            # As JSON and strictly: a list is a tuple, but text is no number and a number is no text.
            return model.model_validate_json(json.dumps(content), strict=True, context={UNITS_REQUIRED: True})
        except ValidationError as error:
            self.problems += list_problems(error, self.root, path, model, tuple(further_keys))
            return None

    def choose(
        self,
        path: tuple[Step, ...],
        package: str,
        base: type[Any],
        *,
        key: str = "kind",
        further_keys: Iterable[str] = (),
        default: str | None = None,
    ) -> tuple[type[Any], Frozen] | None:
        """The plug-in that the section at ``path`` chooses by ``key``, and its options; None after noting the problems.

        ``further_keys`` lists further keys of the section, not the plug-in's. A kind may stand alone (``lab:
        simulated``): it is a section without options. ``default`` is the kind of a section that names none.
        """
        node = self.root.find(path)
        kind_node = node.child(key) if node.entries is not None else node
        if kind_node is None and default is None:
            self.problems.append(_report_missing_kind(node, path, key, list(find(package, base))))
            return None
        kinds = find(package, base)
        kind = kind_node.value if kind_node is not None else default
        if kind_node is not None and (not isinstance(kind, str) or kind not in kinds):
            where = ".".join(str(step) for step in path if isinstance(step, str))
            one = where.removesuffix("s")  # `tests` has a list
            message = f"unknown {one} {key} {quote(kind_node.plain())}"
            self.problems.append(Problem(kind_node.position, message, suggest(str(kind), list(kinds), key)))
            return None
        taken = {key, *further_keys}
        model: type[Frozen] = kinds[str(kind)].Options
        content = {name: child.plain() for name, child in (node.entries or {}).items() if name not in taken}
        options = self.validate(model, content, path, further_keys=taken)
        return None if options is None else (kinds[str(kind)], options)


def _report_missing_kind(node: Node, path: tuple[Step, ...], key: str, kinds: Sequence[str]) -> Problem:
    """The problem of a section whose key ``key`` is missing, or only misspelt."""
    close = get_close_matches(key, node.key_positions, n=1)
    if close:
        return Problem(node.key_positions[close[0]], f"unknown key {quote(close[0])}", f"did you mean `{key}`?")
    alone = node.entries is not None and not node.entries
    where = ".".join(str(step) for step in path if isinstance(step, str))
    message = f"`{where}` is empty" if alone else f"{quote(key)} is missing in `{where}`"
    name = node.child("name")
    meant = nearest_name(str(name.plain()), kinds) if name is not None else None
    step = f"add `{key}: {meant}`, or another of: " if meant is not None else f"add `{key}: ...`, one of: "
    return Problem(node.position, message, step + ", ".join(f"`{kind}`" for kind in kinds))
