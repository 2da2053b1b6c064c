"""Commands and groups as typer makes them, but for three things that a reader of help and errors meets.

Flags show no `<bool>` in the help; errors say what a missing argument is, without words of the libraries below; and
old names of options still work. One convention holds for all commands: `--runs` is the folder that holds the runs, and
`--out` the file or folder that a command writes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

if TYPE_CHECKING:
    from collections.abc import Sequence

_OLD: Final = "--output"
"""Until 0.1 the name of both; it is in no help."""
_WRITES_OUTPUT: Final = frozenset({"export"})
"""Commands whose `--output` was the file that they write."""
_PREFIX: Final = re.compile(r"\b(?:Value|Assertion) error, ")


class Command(TyperCommand):
    """A command of nicbench."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, rename_old(self.name or "", args))
        except typer.BadParameter as error:
            error.message = _PREFIX.sub("", error.message)
            text = getattr(error.param, "help", None)
            if type(error).__name__ == "MissingParameter" and text and not error.message:
                error.message = str(text)
            raise


class Group(TyperGroup):
    """A command that has commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))


def use_for(app: typer.Typer) -> None:
    """Makes the commands of an app, also of those in its groups, commands of these kinds."""
    for command in app.registered_commands:
        command.cls = Command
    for group in app.registered_groups:
        group.cls = Group
        if group.typer_instance is not None:
            use_for(group.typer_instance)


def rename_old(command: str, words: Sequence[str]) -> list[str]:
    """The arguments of a command with today's names of options; what follows ``--`` is left as it is."""
    name = "--out" if command in _WRITES_OUTPUT else "--runs"
    end = words.index("--") if "--" in words else len(words)
    renamed = [
        name if word == _OLD else f"{name}={word.removeprefix(f'{_OLD}=')}" if word.startswith(f"{_OLD}=") else word
        for word in words[:end]
    ]
    return [*renamed, *words[end:]]


def _without_types(parameters: list[Any]) -> list[Any]:
    for one in parameters:
        if isinstance(one, TyperOption) and one.is_flag and one.metavar is None:
            one.metavar = ""
    return parameters
