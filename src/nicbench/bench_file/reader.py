"""From text to a tree that remembers where each value stands: a strict reader of YAML 1.2 that bounds what a hostile
file can cost, and the problems that it and every later check report, each with its line and column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
)

from nicbench.core.errors import BenchFileError, Position, Problem, WrongFileError, quote, suggest
from nicbench.core.lists import grouped

__all__ = ["Position", "Problem", "WrongBenchFileError", "merge_problems", "quote", "suggest"]


class WrongBenchFileError(WrongFileError, BenchFileError):
    """Every problem of one bench file, in the order of the file; ``place`` and ``message`` are those of the first."""

    kind = BenchFileError


def merge_problems(by_configuration: Mapping[str, Sequence[Problem]], of: int) -> list[Problem]:
    """The problems of all configurations, each once; one that not all ``of`` them have names those that do."""
    names_of = grouped(
        (problem, name) for name, problems in by_configuration.items() for problem in dict.fromkeys(problems)
    )
    return [
        problem
        if len(names) == of
        else replace(problem, message=f"configuration {_join_names(names)}: {problem.message}")
        for problem, names in names_of.items()
    ]


def _join_names(names: Sequence[str]) -> str:
    return " and ".join(quote(name) for name in names)


# The tree that a bench file is read into: plain values that remember their positions.


@dataclass(slots=True)
class Node:
    """A scalar, a list or a mapping. ``expanded`` counts its nodes once all aliases are followed."""

    position: Position
    value: Any = None
    items: list[Node] | None = None
    entries: dict[str, Node] | None = None
    key_positions: dict[str, Position] = field(default_factory=dict)
    expanded: int = 1

    def plain(self) -> Any:
        """The node as dicts, lists and scalars, as pydantic takes them."""
        if self.entries is not None:
            return {key: node.plain() for key, node in self.entries.items()}
        if self.items is not None:
            return [node.plain() for node in self.items]
        return self.value

    def child(self, step: str | int) -> Node | None:
        """The node one step below, None if the step does not exist."""
        if self.entries is not None and isinstance(step, str):
            return self.entries.get(step)
        if self.items is not None and isinstance(step, int) and 0 <= step < len(self.items):
            return self.items[step]
        return None

    def find(self, path: Sequence[str | int]) -> Node:
        """The deepest node on ``path``; steps that are not in the file (a union's tag) are skipped."""
        node = self
        for step in path:
            node = node.child(step) or node
        return node

    def position_of(self, path: Sequence[str | int]) -> Position:
        """Where the value at ``path`` stands."""
        return self.find(path).position

    def position_of_key(self, path: Sequence[str | int]) -> Position:
        """Where the last key of ``path`` stands; its value's position where it is not a key."""
        parent = self.find(path[:-1])
        return parent.key_positions.get(str(path[-1]), self.find(path).position)


# Plain scalars by the YAML 1.2 core schema (section 10.3.2): ``no``, ``64:7`` and ``0000:03:00.0`` stay text.


MOST_DIGITS: Final = 25
"""More digits than any quantity has; Python's own conversion grows with the square of them."""

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,4})?")


_SHORTER: Final = "write it in a larger unit"
_LEADING_ZERO = re.compile(r"[-+]?0+[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?")


class NumberError(ValueError):
    """A number that is refused, with the next step."""

    def __init__(self, message: str, next_step: str) -> None:
        super().__init__(message)
        self.next_step = next_step


def resolve(text: str) -> str | int | float | bool | None:
    """The value of an unquoted scalar. Infinity and NaN stay text, for no option of a bench file takes them."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _LEADING_ZERO.fullmatch(text):
        # YAML 1.1 and C read it as octal, YAML 1.2 as decimal: whoever wrote it meant one of the two, or text.
        plain = _require_short(text).lstrip("+-").lstrip("0") or "0"
        raise NumberError(
            f"the number `{text}` begins with a zero, which some programs read as octal",
            f'write `{plain}`, or in quotes (`"{text}"`) what is no number',
        )
    for pattern, base in ((_INTEGER, 10), (_OCTAL, 8), (_HEXADECIMAL, 16)):
        if pattern.fullmatch(text):
            return int(_require_short(text), base)
    return _parse_float(text) if _FLOAT.fullmatch(text) else text


def _parse_float(text: str) -> float:
    value = float(_require_short(text))
    if math.isinf(value):
        raise NumberError(f"{text} is too large a number", _SHORTER)
    return value


def _require_short(text: str) -> str:
    if len(text) > MOST_DIGITS:
        raise NumberError(f"a number of {len(text)} characters is too long", _SHORTER)
    return text


# Explanations of errors of the YAML scanner and parser.


_BY_FRAGMENT = (
    ("found character '\\t'", "a tab is used where spaces are needed", "indent with spaces"),
    ("that cannot start any token", "the character {character} cannot begin a value", "put the value in quotes"),
    (
        "mapping values are not allowed here",
        "a `:` is not expected here",
        "check the indentation, or put the text in quotes",
    ),
    ("could not find expected ':'", "a `:` is missing after this key", "write `key: value`"),
    ("found unexpected end of stream", "a quote is opened and never closed", "close the quote"),
    ("<stream end>", "a `[` or `{{` is opened and never closed", "close it"),
    ("expected ',' or ']'", "a `,` or `]` is missing in this list", "separate values with `,` and close with `]`"),
    ("expected ',' or '}'", "a `,` or `}}` is missing in this mapping", "separate entries with `,` and close with `}`"),
    ("expected <block end>", "this line does not fit what is above it", "check the indentation"),
    ("unknown escape character", "a `\\` in double quotes begins no known escape", "use single quotes"),
    ("found undefined tag handle", "tags (`!...`) are not allowed", "remove it: values need no tags here"),
)


def explain(error: MarkedYAMLError, text: str) -> tuple[str, str]:
    """Message and next step for an error of ruamel.yaml, found by fragments of its text."""
    problem = str(error.problem or error.context or error)
    for fragment, message, next_step in _BY_FRAGMENT:
        if fragment in problem:
            return message.format(character=_character_at(error, text)), next_step
    return f"this is not YAML: {problem}", "check the indentation and the quotes around this line"


def _character_at(error: MarkedYAMLError, text: str) -> str:
    mark = error.problem_mark
    lines = text.splitlines()
    if mark is None or mark.line >= len(lines) or mark.column >= len(lines[mark.line]):
        return "here"
    return f"`{lines[mark.line][mark.column]}`"


LARGEST_FILE_BYTES: Final = 256 * 1024
MOST_NODES: Final = 10_000
DEEPEST: Final = 24

_UNPRINTABLE = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # YAML 1.2, 5.1
_PLAIN_TEXT: Final = "remove it: a bench file is plain text"


def read(content: bytes, path: str) -> Node:
    """Reads the tree of a bench file, whose root is a mapping; WrongBenchFileError where the text is not valid."""
    return _Builder(path).build(_decode(content, path))


def _decode(content: bytes, path: str) -> str:
    def refuse(offset: int, message: str, next_step: str) -> NoReturn:
        before = content[:offset]
        position = Position(before.count(b"\n") + 1, offset - before.rfind(b"\n"))
        raise WrongBenchFileError(path, [Problem(position, message, next_step)])

    if len(content) > LARGEST_FILE_BYTES:
        refuse(0, f"the file is larger than {LARGEST_FILE_BYTES // 1024} KiB", "is this the bench file?")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        refuse(error.start, "the file is not UTF-8 text", "save it with the encoding UTF-8")
    if odd := _UNPRINTABLE.search(text):
        offset = len(text[: odd.start()].encode())
        refuse(offset, _describe_forbidden(odd[0]), _PLAIN_TEXT)
    return text


def _describe_forbidden(character: str) -> str:
    return f"the character U+{ord(character):04X} is not allowed"


class _Builder:
    """Builds one tree from YAML events: holds the stack of open collections and the anchors, and stops at a problem."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._root: Node | None = None
        self._open: list[tuple[Node, str | None]] = []  # a collection, and the anchor it will bear once it is complete
        self._keys: list[tuple[str, Position] | None] = []  # per open collection: the key that waits for its value
        self._anchors: dict[str, Node] = {}
        self._being_built: set[str] = set()
        self._duplicates: list[Problem] = []

    def build(self, text: str) -> Node:
        documents = 0
        for event in self._events(text):
            position = Position(event.start_mark.line + 1, event.start_mark.column + 1)
            if isinstance(event, DocumentStartEvent):
                documents += 1
                self._document(event, documents, position)
            elif isinstance(event, (MappingEndEvent, SequenceEndEvent)):
                self._close()
            elif isinstance(event, NodeEvent):
                self._node(event, position)
        if self._root is None or (self._root.entries is None and self._root.value is None and not self._root.items):
            self._refuse(
                Position(1, 1), "the bench file is empty", "`nicbench init` writes a bench file for this machine"
            )
        if self._root.entries is None:
            kind = "a list" if self._root.items is not None else quote(self._root.value)
            self._refuse(
                self._root.position, f"the file starts with {kind}", "write keys and values: `nicbench: 1`, ..."
            )
        if self._duplicates:
            raise WrongBenchFileError(self._path, self._duplicates)
        return self._root

    def _events(self, text: str) -> Iterator[Any]:
        try:
            yield from YAML(typ="safe", pure=True).parse(text)
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            position = Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)
            self._refuse(position, *explain(error, text))
        except YAMLError as error:
            self._refuse(Position(1, 1), f"this is not YAML: {error}", "`nicbench init` writes one that shows the form")

    def _document(self, event: DocumentStartEvent, number: int, position: Position) -> None:
        if event.version and tuple(event.version) != (1, 2):
            written = ".".join(map(str, event.version))
            self._refuse(position, f"YAML {written} is asked for", "remove the %YAML line: bench files are YAML 1.2")
        if number > 1:
            self._refuse(position, "a second document begins here", "remove the `---`: a bench file is one document")

    def _node(self, event: NodeEvent, position: Position) -> None:
        if isinstance(event, AliasEvent):
            return self._add(self._alias(event.anchor, position), position)
        tag = getattr(event, "tag", None)
        if tag and tag != "!":  # "!" alone marks quoted text in some versions of ruamel.yaml
            self._refuse(position, f"the tag {quote(tag)} is not allowed", "remove it: values need no tags here")
        if isinstance(event, ScalarEvent):
            node = Node(position, value=self._scalar(event, position))
            self._remember(event.anchor, node)
            return self._add(node, position, scalar=event)
        if len(self._open) >= DEEPEST:
            self._refuse(
                position, f"more than {DEEPEST} levels are nested here", "flatten it: a bench file needs about five"
            )
        self._refuse_as_key(position)
        if event.anchor:
            self._being_built.add(event.anchor)
        node = Node(position, entries={}) if isinstance(event, MappingStartEvent) else Node(position, items=[])
        self._open.append((node, event.anchor))
        self._keys.append(None)

    def _scalar(self, event: ScalarEvent, position: Position) -> Any:
        if odd := _UNPRINTABLE.search(event.value):  # written as an escape: "\\e[31m"
            self._refuse(position, _describe_forbidden(odd[0]), _PLAIN_TEXT)
        if not event.implicit[0] or self._is_key():  # quoted, a block scalar, a key: always text
            return event.value
        try:
            return resolve(event.value)
        except NumberError as error:
            self._refuse(position, str(error), error.next_step)

    def _alias(self, name: str, position: Position) -> Node:
        if name in self._being_built:
            self._refuse(position, f"the alias `*{name}` is inside the value that it names", "write the value out")
        if name not in self._anchors:
            self._refuse(
                position,
                f"the alias `*{name}` has no anchor above it",
                f"write `&{name}` before the value, or quote it",
            )
        return self._anchors[name]

    def _remember(self, anchor: str | None, node: Node) -> None:
        if anchor:
            self._anchors[anchor] = node

    def _close(self) -> None:
        node, anchor = self._open.pop()
        self._keys.pop()
        if anchor:
            self._being_built.discard(anchor)
        self._remember(anchor, node)
        self._add(node, node.position)

    def _add(self, node: Node, position: Position, scalar: ScalarEvent | None = None) -> None:
        if not self._open:
            self._root = node
            return
        parent = self._open[-1][0]
        if parent.items is not None:
            parent.items.append(node)
        elif self._keys[-1] is None:
            self._keys[-1] = self._key(node, position, scalar)
            return
        else:
            key, key_position = self._keys[-1]
            self._keys[-1] = None
            self._enter(parent, key, key_position, node)
        parent.expanded += node.expanded
        # The bound on what aliases expand to: counted while building, so that a bomb is refused before it is followed.
        if sum(collection.expanded for collection, _ in self._open) > MOST_NODES:
            self._refuse(
                position, f"the file expands to more than {MOST_NODES} values", "use fewer aliases or shorter lists"
            )

    def _key(self, node: Node, position: Position, scalar: ScalarEvent | None) -> tuple[str, Position]:
        self._refuse_as_key(position, node)
        if scalar is not None and scalar.value == "<<" and scalar.implicit[0]:
            self._refuse(
                position,
                "merge keys (`<<`) are not part of YAML 1.2",
                "repeat the keys, or give a whole value an anchor",
            )
        return (scalar.value if scalar is not None else str(node.value)), position

    def _is_key(self) -> bool:
        return bool(self._open) and self._open[-1][0].entries is not None and self._keys[-1] is None

    def _refuse_as_key(self, position: Position, node: Node | None = None) -> None:
        if self._is_key() and (node is None or node.entries is not None or node.items is not None):
            self._refuse(
                position, "a key must be a word, not a list or a mapping", "put text with `{` or `[` in quotes"
            )

    def _enter(self, parent: Node, key: str, position: Position, node: Node) -> None:
        entries = parent.entries if parent.entries is not None else {}
        if key in entries:
            first = parent.key_positions[key].line
            step = f"keep one of them; the first is on line {first}"
            self._duplicates.append(Problem(position, f"the key {quote(key)} is given twice", step))
            return
        entries[key] = node
        parent.key_positions[key] = position

    def _refuse(self, position: Position, message: str, next_step: str) -> NoReturn:
        raise WrongBenchFileError(self._path, [*self._duplicates, Problem(position, message, next_step)])
