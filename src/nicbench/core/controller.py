"""Where the management controller (BMC) of a machine is, and who may query it. The password itself is never stored."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, model_validator

from nicbench.core.base import Frozen

_LONGEST: Final = 500

# These checks do not quote what they refuse, because it may be a password in the wrong place.


def _url(value: Any) -> str:
    """Checks the URL: ``https://host`` with an optional port.

    Plain http is allowed to this machine only, because it exposes the password.
    """
    try:
        parts = urlsplit(value) if isinstance(value, str) and value.isprintable() and " " not in value else None
        host, _ = (parts.hostname, parts.port) if parts else (None, None)
    except ValueError:
        parts, host = None, None
    if parts is None or not host or parts.scheme not in ("http", "https") or len(value) > _LONGEST:
        raise ValueError("is no address of a management controller: write `https://HOST` or `https://HOST:PORT`")
    if parts.username is not None or parts.password is not None:
        raise ValueError("has a user or a password in it: write `user` and `password_env` or `password_file` instead")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError("has a path: write `https://HOST` alone, Redfish itself says where its resources are")
    if parts.scheme == "http" and not is_loopback(host):
        raise ValueError("would send the password in the clear: write `https://`")
    return f"{parts.scheme}://{parts.netloc}"


def is_loopback(host: str) -> bool:
    """Returns whether the host of a URL is this machine, judged by its name alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _variable(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", value):
        raise ValueError("is no name of an environment variable: write its name, not the password")
    return value


def _path(value: Any) -> str:
    """Checks that a path is absolute or below the home folder, so that it does not depend on the current folder."""
    if not isinstance(value, str) or not value.startswith(("/", "~/")) or not value.isprintable():
        raise ValueError("is no path of a file: write one that begins with `/` or `~/`")
    return value


def _verify(value: Any) -> Any:
    if value is False:
        raise ValueError("cannot be `false`: give the controller's own certificate as the path of a CA file")
    return value if value is True else _path(value)


class Controller(Frozen):
    """A machine's management controller and how to log in to it.

    ``verify``: true for the certificate authorities of this machine, or the path of a PEM file with others. ``system``
    is the last part of the system's path, where the controller has several systems (blades, partitions).
    """

    url: Annotated[str, BeforeValidator(_url)]
    """`https://HOST` or `https://HOST:PORT`, without a path. `http://` is accepted only for this machine."""
    user: str = Field(min_length=1, max_length=100, pattern=r"^[^:\x00-\x1f]+$")
    """An account that may read; the role ReadOnly is enough."""
    password_env: Annotated[str, BeforeValidator(_variable)] | None = None
    """The environment variable that holds the password. Give this or `password_file`."""
    password_file: Annotated[str, BeforeValidator(_path)] | None = None
    """A file that holds the password: an absolute path or one from `~/`, with mode 0600."""
    verify: Annotated[Literal[True] | str, BeforeValidator(_verify)] = True
    """`true`: verify the certificate by the authorities of this machine. Or the path of a PEM file, for example the
    controller's own self-signed certificate. The name in the certificate is always verified.
    """
    system: str | None = Field(default=None, min_length=1, max_length=100)
    """Which system, where a controller has several: the last part of its path."""

    @model_validator(mode="after")
    def _one_password(self) -> Controller:
        if (self.password_env is None) == (self.password_file is None):
            raise ValueError("needs `password_env` or `password_file`, one of them")
        return self
