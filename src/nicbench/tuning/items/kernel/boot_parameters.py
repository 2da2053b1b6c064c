"""What the kernel was booted with: checked, never changed, for it takes a reboot.

Source: Documentation/admin-guide/kernel-parameters.txt; the parameters are those of /proc/cmdline.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from nicbench.core.plan import Values
from nicbench.tuning.items.base import ExpectedOptions, Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+$", max_length=100)]


class BootParametersOptions(ExpectedOptions):
    """``boot_parameters: {expected: {isolcpus: 2-5, nohz_full: 2-5, quiet: true}}``; ``false``: not given at all."""

    expected: dict[Name, str | int | bool] = Field(min_length=1, max_length=100)


class BootParameters(Item):
    """The value of each that is expected; true for one without a value, false for one that is not given."""

    kind = "boot_parameters"
    Options = BootParametersOptions
    options: BootParametersOptions
    scope = "machine"
    phase = Phase.SERVICE
    only_checks = True

    async def read(self, place: Place) -> Values:
        text = await place.host.read_file("/proc/cmdline")
        if text is None:
            raise CannotSetError("/proc/cmdline does not exist")
        given = parameters_of(text)
        return {name: given.get(name.replace("-", "_"), False) for name in self.options.expected}

    def target_values(self, now: Values) -> Values:
        return {name: str(value) if type(value) is int else value for name, value in self.options.expected.items()}


def parameters_of(text: str) -> dict[str, str | bool]:
    """Name and value of each word; quotes keep words together, the last of a name counts, ``-`` is ``_`` in names."""
    found: dict[str, str | bool] = {}
    word, quoted = "", False
    for letter in text.strip() + " ":
        if letter == '"':
            quoted = not quoted
        elif letter.isspace() and not quoted:
            if word == "--":
                break  # what follows is for init
            name, equals, value = word.partition("=")
            if name:
                found[name.replace("-", "_")] = value if equals else True
            word = ""
        else:
            word += letter
    return found
