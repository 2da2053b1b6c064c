"""What a management controller may refuse or leave unsaid."""

from __future__ import annotations

from nicbench.errors import HostError


class RedfishError(HostError):
    """The controller does not tell; the message names no host, user or password, for it stands in the run folder."""
