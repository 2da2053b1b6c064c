"""Errors of refused messages: every problem with the path of its field, and OTG's code."""

from __future__ import annotations

from typing import Final, Literal

from nicbench.core.errors import NicbenchError

INVALID: Final = 400
"""The message is wrong in itself."""
NOT_IMPLEMENTED: Final = 501
"""The message is right, and asks for what this server does not do."""
MOST_ERRORS: Final = 100
"""So many problems of one message are told; a configuration of 4096 flows may have one in each."""
MOST_VALUES_OF_FLOW: Final = 2**20
MOST_VALUES: Final = 2**22
"""Values of all lists and random patterns of a configuration: the engine keeps each in 16 bytes."""


class OtgError(NicbenchError):
    """An error with the answer ``{code, kind, errors}``; ``code`` is also the HTTP status."""

    exit_status = 2

    def __init__(self, errors: list[str], *, code: int = INVALID) -> None:
        super().__init__("; ".join(errors))
        self.errors = errors
        self.code = code

    @property
    def kind(self) -> Literal["validation", "internal"]:
        """OTG's kind of the error: ``validation`` if the client can correct it."""
        return "validation" if self.code == INVALID else "internal"


class Problems:
    """Collects the problems of one message, so that all are told at once, and counts the values that it lists."""

    def __init__(self) -> None:
        self._errors: list[str] = []
        self._code = NOT_IMPLEMENTED
        self._hidden = 0
        self._values = 0
        self._values_of_flow = 0

    def begin_flow(self) -> None:
        """Is told before a flow is read: its lists are counted."""
        self._values_of_flow = 0

    def has_room(self, path: str, values: int) -> bool:
        """Counts values that are to be kept one by one; False, with the problem told, where they are too many."""
        if self._values_of_flow + values > MOST_VALUES_OF_FLOW:
            self.invalid(path, f"the flow lists more than {MOST_VALUES_OF_FLOW} values: use increments")
        elif self._values + values > MOST_VALUES:
            self.invalid(path, f"the configuration lists more than {MOST_VALUES} values: use increments")
        else:
            self._values += values
            self._values_of_flow += values
            return True
        return False

    def invalid(self, path: str, message: str) -> None:
        """Adds a problem that the client can correct."""
        self._code = INVALID
        self._add(path, message)

    def not_implemented(self, path: str, message: str) -> None:
        """Adds a problem of something that this server does not implement."""
        self._add(path, message)

    def raise_any(self) -> None:
        """Raises OtgError where there is a problem; its code is 501 only where nothing else is wrong."""
        if self._errors:
            hidden = [f"... and {self._hidden} more problems"] if self._hidden else []
            raise OtgError(self._errors + hidden, code=self._code)

    def _add(self, path: str, message: str) -> None:
        if len(self._errors) < MOST_ERRORS:
            self._errors.append(f"{path}: {message}")
        else:
            self._hidden += 1
