"""Where a line may be broken that has no space: long names and numbers must not run over the edge of the paper."""

from __future__ import annotations

import re

HERE = "\u200b"
LONGEST = 24
"""Characters in a row without a place to break."""
MOST = 4000
"""Characters of one text: more would fill many sheets, and nobody reads them on paper."""
_LONG = re.compile(rf"[^\s{HERE}]{{{LONGEST + 1},}}")
_AFTER = re.compile(r"(?<=[/._:,;=&?+@\-])(?=\w)")


def breakable(text: str, longest: int = LONGEST) -> str:
    """The text with places to break in every long word: behind its punctuation, else anywhere."""
    if len(text) > MOST:
        text = f"{text[:MOST]} … ({len(text) - MOST:,} more characters are in report.html)"
    return _LONG.sub(lambda word: _broken(word[0], longest), text)


def _broken(word: str, longest: int) -> str:
    parts = _AFTER.sub(HERE, word).split(HERE)
    return HERE.join(HERE.join(part[at : at + longest] for at in range(0, len(part), longest)) for part in parts)


def tokens(text: str) -> list[str]:
    """What stands between places to break."""
    return [token for token in re.split(rf"[ \n{HERE}]+", text) if token]
