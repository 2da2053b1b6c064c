"""Gives a setting of a tuning item its old values back."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import ValidationError

from nicbench.core.base import why_of
from nicbench.core.errors import HostError, NicbenchError
from nicbench.core.registry import find
from nicbench.core.tuning import Values
from nicbench.hosts.base import Host
from nicbench.tuning.setting import CannotSetError, Place, Setting, values_in_words
from nicbench.tuning.undo.base import ValueUndo


class RestoreSetting(ValueUndo):
    """Give a setting of a tuning item its values back, by the item's own reading and writing.

    Only keys that still read as ``asked`` get their value of ``before``; others were changed by somebody since. Keys
    that nobody asked for changed along with them, and are put back along with them.
    """

    kind: Literal["restore_setting"] = "restore_setting"
    item: str
    options: dict[str, Any]
    device: str | None
    before: Values
    asked: Values

    @classmethod
    def of(cls, item: Setting, device: str | None, before: Values, asked: Values) -> Self:
        """The undo of writing ``asked`` where ``before`` was read."""
        options = item.options.model_dump(mode="json")
        return cls(item=item.kind, options=options, device=device, before=before, asked=asked)

    async def undo(self, host: Host) -> str | None:
        """Key by key, in the order in which they were set: what somebody changed since is left.

        What cannot be read any more has gone with its place.
        """
        item, place = self._item(), Place(host, self.device)
        try:
            now = await item.read_checked(place)
        except CannotSetError:
            return None
        asked_for = {key: old for key, old in self.before.items() if key in self.asked}
        entailed = {key: old for key, old in self.before.items() if key not in self.asked}
        old = {key: old for key, old in asked_for.items() if key in now and not item.is_same(key, now[key], old)}
        ours = {key: value for key, value in old.items() if item.is_same(key, now[key], self.asked[key])}
        left = {key: now[key] for key in old if key not in ours}
        if ours:
            ours |= entailed
            await item.write(place, ours)
            after = await item.read_checked(place)
            if wrong := item.find_differing(ours, after):
                got = {key: after.get(key) for key in wrong}
                raise HostError(
                    f"{self.item} should be {values_in_words(wrong)} again and is {values_in_words(got)}",
                    place=str(place),
                )
        if left:
            asked, before = ({key: values[key] for key in left} for values in (self.asked, self.before))
            return (
                f"{place}: {self.item} was left at {values_in_words(left)}: somebody changed it since we set "
                f"{values_in_words(asked)}; "
                f"before the run it was {values_in_words(before)}"
            )
        return None

    async def read_values(self, host: Host) -> Values | None:
        try:
            now = await self._item().read_checked(Place(host, self.device))
        except (CannotSetError, NicbenchError):
            return None
        return {key: now.get(key) for key in self.asked}

    async def write_old(self, host: Host) -> None:
        await self._item().write(Place(host, self.device), self.before)

    async def question(self, host: Host) -> None:
        await self._item().read_checked(Place(host, self.device))

    def describe_goal(self) -> str:
        of = f" of {self.device}" if self.device else ""
        return f"{self.item}{of}, to {values_in_words(self.before)}"

    def _item(self) -> Setting:
        """The item made again; HostError where this nicbench does not know it."""
        kinds = find("nicbench.tuning.items", Setting)
        if self.item not in kinds:
            raise HostError(f"this nicbench does not know the tuning item {self.item!r}: undo it with the one that ran")
        try:
            return kinds[self.item](kinds[self.item].Options.model_validate(self.options))
        except ValidationError as error:
            raise HostError(f"the options of {self.item} are not understood: {why_of(error.errors()[0])}") from error
