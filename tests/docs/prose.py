"""Lints the prose of documents and docstrings: ``python -m tests.docs.prose`` lists wordings that a reader must decode.

They leave out who does what ("is told", "is said"), negate a noun in place of the verb ("is no loss"), or count by "so
many". A phrase that is right where it stands is an exception, of which there are at most twenty.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.commands import run_captured

ROOT = Path(__file__).parents[2]
WORDINGS = re.compile(
    r"\b(?:(?:is|are|was|were|be) (?:told|said|(?-i:none)|no (?!longer|more|further|other|such|less)[a-z-]+)"
    r"|so (?:many|much|often) (?:that|as|of|times)|of nobody|nobody'?s|none there|where (?:there )?(?:is|are) none"
    r"|what is (?:its|ours|theirs) own|by so (?:much|many)|runs? as (?:it is|they are))\b",
    re.IGNORECASE,
)
EXCEPTIONS = (
    "is said only if",  # docs/trust.md: what the report says
    "it cannot be told whether",  # the exit status 5, as `check` prints it
    "*cannot be told*",
    "there is no image X on this machine",  # a message
    "it is told to drop",
    "are told apart",
)
MOST_EXCEPTIONS = 20


def texts() -> Iterator[tuple[str, int, str]]:
    """Yields path, line number and line of every document, and of every docstring in ``src``."""
    command = ("git", "ls-files", "*.md", "src/**.py")
    tracked = run_captured(command, cwd=ROOT)
    for name in tracked.stdout.splitlines():
        content = (ROOT / name).read_text(encoding="utf-8")
        if name.endswith(".py"):
            for node in ast.walk(ast.parse(content)):
                match node:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        yield from ((name, number, line) for number, line in enumerate(text.splitlines(), node.lineno))
        elif "/vendor/" not in name:
            yield from ((name, number, line) for number, line in enumerate(content.splitlines(), 1))


def findings() -> Iterator[str]:
    """Yields each wording with its place."""
    for name, number, line in texts():
        for phrase in EXCEPTIONS:
            line = line.replace(phrase, "")
        for match in WORDINGS.finditer(line):
            yield f"{name}:{number}: “{match[0]}”: say who does what, or what is, in plain words"


if __name__ == "__main__":
    found = list(findings())
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found) or len(EXCEPTIONS) > MOST_EXCEPTIONS)
