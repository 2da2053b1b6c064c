"""The bond that each port of a lab's server is, and its partner at the other end: names, commands, words. Pure."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from nicbench.interfaces._bond_options import BondSettings, HashPolicy, require_links
from nicbench.model.bond import HASHED_MODES


class LabBond(BondSettings):
    """``bond: {links: 4, mode: 802.3ad, policy: layer3+4, switch_policy: layer2+3}``.

    ``policy`` chooses the port that what the server sends leaves by, ``switch_policy`` that of the other end (the
    server's where none is given).
    """

    links: int = Field(default=4, ge=2, le=16)
    mode: Literal["balance-rr", "active-backup", "balance-xor", "802.3ad"] = "802.3ad"
    switch_policy: HashPolicy | None = None

    @model_validator(mode="after")
    def _switch_hashes(self) -> Self:
        if self.switch_policy is not None and self.mode not in HASHED_MODES:
            raise ValueError(f"`{self.mode}` hashes nothing, so `switch_policy` has no meaning: remove it")
        require_links(self, self.links)
        return self

    @property
    def partner(self) -> BondSettings:
        """The other end's."""
        return BondSettings(
            mode=self.mode,
            policy=self.switch_policy or self.policy,
            miimon=self.miimon,
            lacp_rate=self.lacp_rate,
            min_links=self.min_links,
        )

    @property
    def switch_knows_it(self) -> bool:
        """Whether a switch must have a bond as well; to one of ``active-backup`` its ports are like any other."""
        return self.mode != "active-backup"

    @property
    def words(self) -> str:
        """Such as: 802.3ad, layer3+4, the other end layer2."""
        own, other = self.hashes_by, self.partner.hashes_by
        policies = "" if own is None else f", {own}" if own == other else f", {own}, at the other end {other}"
        return f"{self.mode}{policies}"


def members_of(device: str, links: int) -> tuple[str, ...]:
    """The interfaces under a bond, in the order in which they join it: s0p1, s0p2, ..."""
    return tuple(f"{device}p{number}" for number in range(1, links + 1))
