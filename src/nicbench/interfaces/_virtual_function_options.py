"""What a bench file says of a virtual function that a port is (``virtual_function``). Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints

from nicbench.model.base import Frozen

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
Interface = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,14}$")]


def _unicast(text: str) -> str:
    low = text.lower()
    if not _MAC.fullmatch(low) or int(low[:2], 16) & 1 or low == "00:00:00:00:00:00":
        raise ValueError(f"`{text}` is no MAC address of a card: write six bytes in hex, the first of them even")
    return low


Mac = Annotated[str, AfterValidator(_unicast)]
"""Of one card, in lower case."""


class VirtualFunctionOptions(Frozen):
    """``virtual_function: {of: enp1s0f0, number: 0, mac: 02:00:00:00:00:01, trust: true}`` (SR-IOV).

    What is None stays as the adapter's driver has it; without a ``mac`` it gets a locally administered one, the same
    in every run.
    """

    of: Interface
    number: int = Field(ge=0, le=255)
    mac: Mac | None = None
    vlan: int | None = Field(default=None, ge=0, le=4094)
    """What the adapter tags its frames with, unseen by the function; 0 is none."""
    trust: bool | None = None
    """Whether it may set other addresses and receive every frame."""
    spoof_check: bool | None = None
    """Whether the adapter drops what it sends from addresses that are not its own."""

    @property
    def device(self) -> str:
        """Its interface's name where the port gives none, in the way of systemd."""
        return f"{self.of}v{self.number}"

    @property
    def given_mac(self) -> str:
        """``mac``, or one made of the names."""
        digest = hashlib.sha256(f"{self.of} {self.number}".encode()).digest()
        return self.mac or ":".join(("02", *(f"{byte:02x}" for byte in digest[:5])))


def setting(options: VirtualFunctionOptions) -> tuple[str, ...]:
    """The command that sets it, on the host of the physical function (ip-link(8))."""
    words = ["ip", "link", "set", "dev", options.of, "vf", str(options.number), "mac", options.given_mac]
    if options.vlan is not None:
        words += ["vlan", str(options.vlan)]
    for name, wanted in (("spoofchk", options.spoof_check), ("trust", options.trust)):
        if wanted is not None:
            words += [name, "on" if wanted else "off"]
    return tuple(words)


def asked(options: VirtualFunctionOptions) -> dict[str, Any]:
    """What is to be read back, in the words of ``told``."""
    wanted = {"vlan": options.vlan, "spoof_check": options.spoof_check, "trust": options.trust}
    return {"mac": options.given_mac, **{name: value for name, value in wanted.items() if value is not None}}


def told(function: Mapping[str, Any]) -> dict[str, Any]:
    """The same of what ``adapters.links.virtual_functions`` has read."""
    vlans = function["vlans"] or [0]
    return {
        "mac": str(function["mac"] or "").lower(),
        "vlan": int(vlans[0] or 0),
        "spoof_check": function["spoof_check"],
        "trust": function["trusted"],
    }
