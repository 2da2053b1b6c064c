"""Whether SELinux forbids or only tells: its checks of every packet and system call cost time.

Source: selinux(8), /sys/fs/selinux/enforce. It is never switched off altogether, which needs a reboot.
"""

from __future__ import annotations

from typing import Literal

from nicbench.core.base import Frozen
from nicbench.core.plan import Values
from nicbench.tuning.items.base import Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

_PATH = "/sys/fs/selinux/enforce"
_OFF = "disabled"


class SelinuxOptions(Frozen):
    """``selinux: permissive``; a machine where it is off altogether fulfils that too."""

    mode: Literal["permissive", "enforcing"]


class Selinux(Item):
    """``disabled``, ``permissive`` or ``enforcing``."""

    kind = "selinux"
    Options = SelinuxOptions
    options: SelinuxOptions
    scope = "machine"
    phase = Phase.MACHINE
    alone = "mode"

    async def read(self, place: Place) -> Values:
        text = await place.host.read_file(_PATH)
        return {"mode": _OFF if text is None else "enforcing" if text.strip() == "1" else "permissive"}

    def target_values(self, now: Values) -> Values:
        if now["mode"] != _OFF:
            return {"mode": self.options.mode}
        if self.options.mode == "enforcing":
            raise CannotSetError("SELinux is off here; switching it on needs a reboot")
        return {"mode": _OFF}

    async def write(self, place: Place, values: Values) -> None:
        await place.host.write_file(_PATH, "1" if values["mode"] == "enforcing" else "0")
