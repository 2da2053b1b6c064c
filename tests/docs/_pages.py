"""The pages of the documentation, their blocks of code, and the bench files in them."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@dataclass(frozen=True)
class Block:
    """A block of code of a page."""

    place: str
    language: str
    text: str
    saved_as: str | None
    rest: str
    """What makes a part of a bench file whole, from a comment before the block: ``<!-- with ... -->``."""

    def commands(self) -> Iterator[tuple[list[str], list[str]]]:
        """Each command of a console, with the lines that are shown below it; ``...`` stands for any."""
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            command, *shown = part.splitlines()
            yield shlex.split(command, comments=True), [line for line in shown if line.strip() not in ("", "...")]


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page in their order, without directives."""
    text = page.read_text()
    found = []
    for match in re.finditer(r"^```([a-z]+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        saved = re.search(r"Save this as `([^`]+)`:\s*$", text[: match.start()])
        line = text.count("\n", 0, match.start()) + 1
        place = f"{page.relative_to(ROOT)}:{line}"
        rest = re.search(r"<!-- with\n((?:(?!-->).)*)-->\s*$", text[: match.start()], re.DOTALL)
        found.append(Block(place, match[1], match[2], saved[1] if saved else None, rest[1] if rest else ""))
    return found


def whole_bench_files(block: Block) -> Iterator[str]:
    """The bench file of a block; where it is a part, with the least that makes it whole. None where it is no such."""
    if re.search(r"^nicbench: 1$", block.text, re.MULTILINE):
        yield block.text
        return
    yaml = YAML(typ="safe", pure=True)
    part = yaml.load(block.text)
    if not isinstance(part, dict) or not part.keys() & KEYS:
        return
    _merge(part, yaml.load(block.rest) or {})
    text = io.StringIO()
    yaml.dump({**_rest_of(block.text, part), **part}, text)
    yield text.getvalue()


def _merge(one: dict[str, Any], other: dict[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(one.get(key), dict):
            _merge(one[key], value)
        else:
            one[key] = value


KEYS = {"lab", "hosts", "ports", "links", "dut", "tester", "traffic", "tests", "runs", "configurations", "report"}
KEYS |= {"declared", "hypervisor", "redfish", "monitor", "tuning", "thresholds"}
_ROUNDS = re.compile(
    r"method: (stream|transfer|frames|incast|request-response|placement)|kind: (server|clients|file-server)|\bc0\b"
)


def _rest_of(text: str, part: dict[str, Any]) -> dict[str, Any]:
    """The keys that a part of a bench file lacks: of frames, or of workloads where it is about those."""
    is_of_rounds = _ROUNDS.search(text) is not None
    rest = {"nicbench": 1, "title": "A part of a page"}
    if not part.keys() & {"lab", "ports"}:
        rest["lab"] = {"kind": "clients" if is_of_rounds else "veth"}
    lab = {**rest, **part}.get("lab")
    rest["dut"] = {"kind": "server" if is_of_rounds else "kernel-forward" if lab else "external"}
    method = "stream" if is_of_rounds else "throughput"
    rest["tests"] = [{"name": method, "method": method}]
    return rest
