"""Reads the command line: how each command is called, its arguments and options. Pure; it knows no page."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import typer

from nicbench.cli.app import make_whole_app


@functools.cache
def _command(name: str) -> Any:
    """Returns the command of ``run``, or of ``lab up``."""
    command = typer.main.get_command(make_whole_app())
    for word in name.split():
        command = command.commands[word]  # type: ignore[attr-defined]
    return command


def commands() -> Iterator[str]:
    """Yields every command by its words, those of a group (``lab up``) instead of the group."""

    def below(command: Any, words: str) -> Iterator[str]:
        if not hasattr(command, "commands"):
            yield words
        for name, each in getattr(command, "commands", {}).items():
            yield from below(each, f"{words} {name}".strip())

    yield from below(typer.main.get_command(make_whole_app()), "")


def usage_of(name: str) -> str:
    """Returns how the command is called, in one line."""
    parameters = _command(name).params
    arguments = [_written(each) for each in parameters if each.param_type_name == "argument"]
    return " ".join(["nicbench", name, *(["[OPTIONS]"] if len(parameters) > len(arguments) else []), *arguments])


def help_of(name: str) -> str:
    """Returns what the command is for."""
    return " ".join((_command(name).help or "").split())


def _written(argument: Any) -> str:
    word = str(argument.metavar or argument.name.upper()).strip("[]{}.")
    word = f"{word}..." if argument.nargs == -1 and "..." not in word else word
    return word if argument.required else f"[{word}]"


def options_of(name: str) -> Iterator[tuple[str, str]]:
    """Yields the arguments and options of a command, each with its help."""
    command = _command(name)
    context = command.make_context(name, [], resilient_parsing=True)
    for each in command.params:
        if getattr(each, "hidden", False):
            continue
        if each.param_type_name == "argument":
            yield f"`{_written(each)}`", each.help or ""
            continue
        names = ", ".join(f"`{option}`" for option in each.opts)
        value = "" if each.is_flag else f" `{_value(each, context)}`"
        times = " Repeatable." if each.multiple and "repeatable" not in (each.help or "") else ""
        default = _default(each)
        yield f"{names}{value}", f"{each.help or ''}{times}{default}"


def _value(option: Any, context: Any) -> str:
    return str(option.metavar or option.display_type(context).strip("<>"))


def _default(option: Any) -> str:
    shown = option.show_default
    if isinstance(shown, str):
        return f" Default: {shown}."
    if shown is False or option.is_flag or option.default in (None, (), [], ""):
        return ""
    return f" Default: `{option.default}`."
