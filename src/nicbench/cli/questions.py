"""Asks on a terminal: one of several answers, a text, yes or no. Questions go to stderr, as all that is no result."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from nicbench.cli.output import say
from nicbench.core.errors import UsageError


def can_ask() -> bool:
    """Whether somebody is there to answer."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def ask_choice(question: str, answers: Sequence[tuple[str, str]], default: int = 0) -> str:
    """Returns the chosen answer; each has a name, which is returned, and words. A number or the name is taken."""
    say(f"\n{question}")
    width = max(len(name) for name, _ in answers)
    for number, (name, words) in enumerate(answers, 1):
        say(f"  {number}  {name:<{width}}  {words}")
    names = [name for name, _ in answers]
    while True:
        given = ask_text("which", str(default + 1))
        if given in names:
            return given
        if given.isdecimal() and 1 <= int(given) <= len(names):
            return names[int(given) - 1]
        say(f"  a number from 1 to {len(names)}, please")


def ask_text(question: str, default: str | None = None) -> str:
    """Returns a text without blanks around it; InterruptedRunError's status where the input ends."""
    try:
        return str(typer.prompt(question, default=default, err=True)).strip()
    except typer.Abort as error:
        raise UsageError(
            "no answer was given", next_step="give the answers as options: nicbench init --help"
        ) from error


def ask_yes(question: str) -> bool:
    """Returns the answer to a yes-or-no question; no where only Return is pressed."""
    try:
        return bool(typer.confirm(question, default=False, err=True))
    except typer.Abort as error:
        raise UsageError(
            "no answer was given", next_step="give the answers as options: nicbench init --help"
        ) from error
