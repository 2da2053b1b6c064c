"""The option of everything that is only checked."""

from __future__ import annotations

from nicbench.model.base import Frozen


class ExpectedOptions(Frozen):
    """``required``: a machine that is otherwise is not measured; without it, the report says so."""

    required: bool = False
