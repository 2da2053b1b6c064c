"""Errors of the YAML scanner and parser in plain language."""

from __future__ import annotations

from ruamel.yaml.error import MarkedYAMLError

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
    """What is wrong, and what to do, from the words of ruamel.yaml."""
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
