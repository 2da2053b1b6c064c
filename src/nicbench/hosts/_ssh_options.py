"""What a bench file says of a host that is reached by ssh. There is no place for a password."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from nicbench.model.base import Frozen
from nicbench.model.quantity import Seconds

_NO_OPTION = r"^[^-\s][^\s]*$"
"""What begins with a dash would be an option of ssh, and what has a space no address."""

Word = Annotated[str, Field(pattern=_NO_OPTION, max_length=255)]


def _hops(value: Any) -> Any:
    """One may stand alone."""
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


Hops = Annotated[tuple[Word, ...], BeforeValidator(_hops)]


class SshOptions(Frozen):
    """``hosts: {client1: {kind: ssh, address: 10.0.0.5}}``; what is not said is as ~/.ssh/config has it."""

    address: Word
    """Name or address, or an alias of ~/.ssh/config."""
    user: Word | None = None
    port: int | None = Field(default=None, ge=1, le=65535)
    key: str | None = None
    """File of a private key; none: those of the agent, of ~/.ssh/config, and the usual ones."""
    known_hosts: str | None = None
    """File of host keys; none: as ~/.ssh/config says, else ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts."""
    jump: Hops = ()
    """Hosts to go through, each ``[user@]address[:port]``, the nearest first."""
    proxy_command: tuple[str, ...] | None = Field(default=None, min_length=1)
    """A command of this machine whose stdin and stdout are the connection."""
    connect_timeout: Seconds = Field(default=10.0, gt=0.0, le=300.0)
    lease: Seconds = Field(default=10.0, ge=3.0, le=300.0)
    """After so long without a word of nicbench the host ends what runs there and puts its settings back."""

    @model_validator(mode="after")
    def _one_way(self) -> SshOptions:
        if self.jump and self.proxy_command:
            raise ValueError("has `jump` and `proxy_command`: write one of them")
        return self
