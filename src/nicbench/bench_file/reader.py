"""Text to tree: a strict reader of YAML 1.2 that bounds everything a hostile file could make large.

It builds the tree from ruamel.yaml's events, one by one, so that a bound is met before memory or the stack is:
nothing here recurses, an alias shares the node it names, and what it would expand to is only counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
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

from nicbench.bench_file.nodes import Node
from nicbench.bench_file.problems import Position, Problem, WrongBenchFileError, quote
from nicbench.bench_file.scalars import NumberTooLongError, resolve
from nicbench.bench_file.syntax import explain

LARGEST_FILE_BYTES: Final = 256 * 1024
MOST_NODES: Final = 10_000
DEEPEST: Final = 24

_UNPRINTABLE = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # YAML 1.2, 5.1
_PLAIN_TEXT: Final = "remove it: a bench file is plain text"


def read(content: bytes, path: str) -> Node:
    """The tree of a bench file; its top is a mapping. WrongBenchFileError where it is not."""
    return _Builder(path).build(_text_of(content, path))


def _text_of(content: bytes, path: str) -> str:
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
        refuse(offset, _not_allowed(odd[0]), _PLAIN_TEXT)
    return text


def _not_allowed(character: str) -> str:
    return f"the character U+{ord(character):04X} is not allowed"


class _Builder:
    """One reading: the stack of open collections, the anchors, and the first problem that stops it."""

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
                Position(1, 1), "the bench file is empty", "see examples/ for bench files that run as they are"
            )
        if self._root.entries is None:
            kind = "a list" if self._root.items is not None else quote(self._root.value)
            self._refuse(
                self._root.position, f"the file begins with {kind}", "write keys and values: `nicbench: 1`, ..."
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
            self._refuse(Position(1, 1), f"this is not YAML: {error}", "see examples/ for the form of a bench file")

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
            self._refuse(position, _not_allowed(odd[0]), _PLAIN_TEXT)
        if not event.implicit[0]:  # quoted or a block scalar: always text
            return event.value
        try:
            return resolve(event.value)
        except NumberTooLongError as error:
            self._refuse(position, str(error), "write it in larger units")

    def _alias(self, name: str, position: Position) -> Node:
        if name in self._being_built:
            self._refuse(position, f"the alias `*{name}` stands inside what it names", "write the value out")
        if name not in self._anchors:
            self._refuse(
                position,
                f"the alias `*{name}` names no anchor above it",
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

    def _refuse_as_key(self, position: Position, node: Node | None = None) -> None:
        waits_for_key = bool(self._open) and self._open[-1][0].entries is not None and self._keys[-1] is None
        if waits_for_key and (node is None or node.entries is not None or node.items is not None):
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
