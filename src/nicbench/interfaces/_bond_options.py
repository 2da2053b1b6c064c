"""What a bond is to be: the options of the bench file, and the ``ip`` commands that make it so. Pure.

Options and their values are those of the driver (Documentation/networking/bonding.rst of the kernel, ip-link(8)).
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from nicbench.model.base import Frozen
from nicbench.model.bond import HASHED_MODES
from nicbench.model.distinct import Distinct

BondMode = Literal["balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"]
HashPolicy = Literal["layer2", "layer2+3", "layer3+4", "encap2+3", "encap3+4", "vlan+srcmac"]
"""``xmit_hash_policy``: which fields of a frame choose the port that it leaves by."""
LACP: Final = "802.3ad"
DEFAULT_POLICY: Final[HashPolicy] = "layer3+4"
"""That of the published study (docs/studies.md); the driver's own is ``layer2``, by which one client has one port."""
_MIIMON_MS: Final = 100

Device = Annotated[str, Field(pattern=r"^[^/\s:]{1,15}$")]
"""A name of an interface, as the kernel takes it."""


class BondSettings(Frozen):
    """What every bond has. Defaults are those of the published study: LACP, ``layer3+4``, links watched each 100 ms.

    ``policy`` None: the default, where the mode hashes. ``miimon`` is in ms. With ``lacp_rate: fast`` partners speak
    every second, so that they find each other in seconds; with ``slow`` every 30. Below ``min_links`` links that are up
    the bond is down.
    """

    mode: BondMode = "802.3ad"
    policy: HashPolicy | None = None
    miimon: int = Field(default=_MIIMON_MS, ge=1, le=10_000)
    lacp_rate: Literal["slow", "fast"] | None = None
    min_links: int | None = Field(default=None, ge=0, le=64)

    @model_validator(mode="after")
    def _goes_with_its_mode(self) -> Self:
        if self.policy is not None and self.mode not in HASHED_MODES:
            hashed = " and ".join(sorted(HASHED_MODES))
            raise ValueError(f"`{self.mode}` hashes nothing, so `policy` has no meaning: remove it; {hashed} hash")
        for key in ("lacp_rate", "min_links"):
            if getattr(self, key) is not None and self.mode != LACP:
                raise ValueError(f"`{key}` is of LACP: remove it, or write `mode: {LACP}`")
        return self

    @property
    def hashes_by(self) -> str | None:
        """Its policy, also where none was given; None where the mode does not hash."""
        return (self.policy or DEFAULT_POLICY) if self.mode in HASHED_MODES else None

    def data(self) -> dict[str, str | int]:
        """What ``ip -j -d link show`` must read afterwards, by its names, in the order in which it is set."""
        wanted: dict[str, str | int] = {"mode": self.mode, "miimon": self.miimon}
        if self.hashes_by is not None:
            wanted["xmit_hash_policy"] = self.hashes_by
        if self.mode == LACP:
            wanted["ad_lacp_rate"] = self.lacp_rate or "fast"
            wanted["min_links"] = self.min_links or 0
        return wanted


class BondOptions(BondSettings):
    """``bond: {of: [e0, e1, e2, e3], mode: 802.3ad, policy: layer3+4}`` of a port. ``mtu`` is of all of it, bytes."""

    of: Distinct[Device] = Field(min_length=1, max_length=64)
    mtu: int | None = Field(default=None, ge=68, le=65535)

    @model_validator(mode="after")
    def _has_its_fewest_links(self) -> Self:
        require_links(self, len(self.of))
        return self


def require_links(settings: BondSettings, links: int) -> None:
    """ValueError where a bond of so many links could never be up."""
    if settings.min_links is not None and settings.min_links > links:
        raise ValueError(
            f"a bond of {links} links is never up that needs {settings.min_links} (`min_links`): write at most {links}"
        )


def creating(name: str, settings: BondSettings) -> tuple[str, ...]:
    """The command that makes it, without ports and down."""
    words = {"ad_lacp_rate": "lacp_rate"}
    data = [word for key, value in settings.data().items() for word in (words.get(key, key), str(value))]
    return ("ip", "link", "add", "name", name, "type", "bond", *data)


def joining(name: str, port: str) -> tuple[tuple[str, ...], ...]:
    """A port joins it: it must be down for that, and the bond brings it up."""
    link = ("ip", "link", "set", "dev", port)
    return ((*link, "down"), (*link, "master", name))
