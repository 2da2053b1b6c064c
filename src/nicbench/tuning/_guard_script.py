"""The script that puts a host's settings back when nobody hears of nicbench any more. Pure: steps in, shell out."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from nicbench.tuning._rehearsal import Change, Question, Rehearsed

SCRIPT_NAME, TOLD_NAME = "undo.sh", "told"
_COMMAND_TIMEOUT_S = 20

_HEAD = """\
# Written by nicbench: puts back what a run changed on this host, the last change first, once nothing is heard of it.
# What does not read any more as the run left it was changed by somebody since, and is left alone.
exec 9<"$0"
flock 9
[ -e "$0" ] || exit 0
told=${0%/*}/told
PATH="$PATH:/usr/sbin:/sbin:/usr/bin:/bin" LC_ALL=C
export PATH LC_ALL
reads() { [ "$(timeout TIMEOUT "$@" 2>/dev/null | sha256sum)" = "$wanted  -" ]; }
back() { echo "put back: $1" >>"$told"; }
left() { echo "left alone, somebody changed it since: $1" >>"$told"; }
failed() { echo "could not put back: $1" >>"$told"; }
"""


@dataclass(frozen=True, slots=True)
class Step:
    """One change of the run: what it is in words, and how it is undone; None where that could not be foreseen."""

    words: str
    rehearsed: Rehearsed | None


def script(steps: Sequence[Step]) -> str:
    """The whole script, of all steps of one host in the order in which they were made."""
    parts = [_HEAD.replace("TIMEOUT", str(_COMMAND_TIMEOUT_S))]
    parts += [_undone(step) for step in reversed(steps)]
    return "\n".join([*parts, 'mv -f "$0" "$0.done"', ""])


def _undone(step: Step) -> str:
    words = shlex.quote(step.words)
    if step.rehearsed is None:
        return f'echo {shlex.quote(f"not undone by this script: {step.words}")} >>"$told"'
    conditions = " && ".join(_condition(each) for each in step.rehearsed.holds) or "true"
    changes = " && ".join(_change(each) for each in step.rehearsed.changes)
    return f"if {conditions}; then\n    if {changes}; then back {words}; else failed {words}; fi\nelse left {words}; fi"


def _condition(question: Question) -> str:
    return f"wanted={hashlib.sha256(question.answer.encode()).hexdigest()} reads {shlex.join(question.command)}"


def _change(change: Change) -> str:
    command = f"timeout {_COMMAND_TIMEOUT_S} {shlex.join(change.command)} >/dev/null 2>&1"
    return command if change.text is None else f"printf %s {shlex.quote(change.text)} | {command}"
