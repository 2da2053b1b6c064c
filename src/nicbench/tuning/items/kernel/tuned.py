"""The profile of tuned, a program that sets much of what is set here; what it sets is not undone piece by piece.

Source: tuned-adm(8). It comes before all other items, so that these lie on top of what it sets.
"""

from __future__ import annotations

import re

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.errors import NicbenchError
from nicbench.core.plan import Values
from nicbench.tuning.items.base import Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

_TIMEOUT_S = 120.0
_ACTIVE = re.compile(r"^Current active profile:[ \t]*(\S[^\n]*)$", re.MULTILINE)
_NONE = "No current active profile"


class TunedOptions(Frozen):
    """``tuned: network-latency``; ``off`` switches its settings off."""

    profile: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_. -]{0,127}$")


class TunedItem(Item):
    """The active profile; ``off`` where it has none."""

    kind = "tuned"
    Options = TunedOptions
    options: TunedOptions
    scope = "machine"
    phase = Phase.SERVICE
    alone = "profile"

    async def read(self, place: Place) -> Values:
        try:
            done = await place.host.run(("tuned-adm", "active"), check=False)
        except NicbenchError as error:
            raise CannotSetError("tuned is not installed here") from error
        profile = profile_of(done.stdout)
        if profile is None:
            reason = (done.stderr or done.stdout).strip().splitlines() or ["it says nothing"]
            raise CannotSetError(f"tuned does not say which profile is active: {reason[-1]}")
        return {"profile": profile}

    def target_values(self, now: Values) -> Values:
        return {"profile": self.options.profile}

    async def write(self, place: Place, values: Values) -> None:
        profile = str(values["profile"])
        words = ("off",) if profile == "off" else ("profile", *profile.split())
        await place.host.run(("tuned-adm", *words), timeout_s=_TIMEOUT_S)


def profile_of(text: str) -> str | None:
    """Of the output of ``tuned-adm active``; None where it says neither."""
    found = _ACTIVE.search(text)
    return found[1].strip() if found else "off" if _NONE in text else None
