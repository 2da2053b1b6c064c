"""Facts that each test interface has: asked for side by side, and null, with its reason, for one that does not say."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import NOT_UNDERSTOOD, UNKNOWN, Fact

REASONS = "reasons_null"


async def ask_interfaces(devices: tuple[str, ...], ask: Callable[[str], Awaitable[Any]]) -> dict[str, Any]:
    """The answer of each interface, and under ``reasons_null`` why some have none.

    UnknownFactError, with the reason, where there is no interface, or none of them answers.
    """
    if not devices:
        raise UnknownFactError("this host has no kernel interface in the test")
    found: dict[str, Any] = {}
    reasons: dict[str, str] = {}

    async def one(device: str) -> tuple[Any, str | None]:
        try:
            return await ask(device), None
        except UNKNOWN as error:
            return None, (str(error).splitlines() or ["no reason given"])[0]
        except NOT_UNDERSTOOD as error:
            return None, f"not understood: {type(error).__name__}: {error}"

    for device, (answer, reason) in zip(devices, await asyncio.gather(*map(one, devices)), strict=True):
        found[device] = answer
        if reason is not None:
            reasons[device] = reason
    if len(reasons) == len(devices):
        raise UnknownFactError("; ".join(dict.fromkeys(reasons.values())))
    return {**found, REASONS: reasons} if reasons else found


class EthtoolFact(Fact):
    """What ``ethtool`` prints of an interface with ``options``; where it has a JSON of it, that first (``as_json``)."""

    options: ClassVar[tuple[str, ...]]
    as_json: ClassVar[bool] = False

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        async def ask(device: str) -> Any:
            return self.parse(await self._text(host, device))

        return await ask_interfaces(devices, ask)

    @abstractmethod
    def parse(self, text: str) -> Any:
        """Pure: what it prints as plain data."""

    async def _text(self, host: Host, device: str) -> str:
        if self.as_json:
            try:
                return await output_of(host, "ethtool", "--json", *self.options, device)
            except UnknownFactError:
                pass  # an older one prints text only; where the driver does not answer, the text says why
        return await output_of(host, "ethtool", *self.options, device)
