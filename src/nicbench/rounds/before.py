"""What is said of a command before a round that did not come to its end."""

from __future__ import annotations

from typing import Final

from nicbench.errors import HostError
from nicbench.model.round import HostCommand

_STEP: Final = (
    "run it there by hand; what it leaves in the background keeps its output open, unless that is redirected "
    "(`>/dev/null 2>&1 &`), and so does what it prints without end; or give it a longer `timeout` in `before_each`"
)
_STEP_OF_CACHES: Final = "run it there by hand: a disk may hang, or have much to write; or write `drop_caches: false`"


def unended(command: HostCommand, host: str, error: HostError) -> HostError:
    """In the words of the bench file: the option that it is of, its host and how long it had."""
    option = "drop_caches" if command.on_machine else "before_each"
    why = error.message.rpartition(": ")[2]  # a host's message begins with the command as it was wrapped
    return HostError(
        f"`{option}`, the command {command.run!r} before a round, which has {command.timeout_s:g} s: {why}",
        place=host,
        next_step=_STEP_OF_CACHES if command.on_machine else _STEP,
    )
