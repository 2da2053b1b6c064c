"""Settings of the kernel by name (sysctl): those of the network in the host's namespace, all others of the machine.

Source: Documentation/admin-guide/sysctl of the kernel. Names are those of ``sysctl -a``; a dot that is part of a name
(of a VLAN interface) is written as a slash, as sysctl(8) has it.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError
from nicbench.core.plan import Values
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import outermost
from nicbench.tuning.changes import Changes
from nicbench.tuning.items.base import Item, Phase, Place
from nicbench.tuning.setting import CannotSetError, same_value

_NETWORK = "/proc/sys/net/"
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_:@-]+([./][A-Za-z0-9_:@-]+)*$", max_length=200)]


class SysctlOptions(Frozen):
    """``sysctls: {net.core.busy_poll: 50}``: any names."""

    values: dict[Name, int | str] = Field(min_length=1, max_length=200)


class Sysctls(Item):
    """Each is read and written under /proc/sys."""

    kind = "sysctls"
    Options = SysctlOptions
    options: SysctlOptions
    scope = "namespace"
    phase = Phase.TRAFFIC
    alone = "values"

    async def read(self, place: Place) -> Values:
        values: Values = {}
        for name in self.options.values:
            text = await (await _where(place.host, name)).read_file(path_of(name))
            if text is None:
                raise CannotSetError(f"there is no sysctl {name} in this kernel or namespace")
            values[name] = " ".join(text.split())
        return values

    def target_values(self, now: Values) -> Values:
        return {name: " ".join(str(value).split()) for name, value in self.options.values.items()}

    async def apply(self, changes: Changes, place: Place, before: Values, asked: Values) -> None:
        """Those of the machine under the machine: they outlive the namespace, and so does their undo."""
        of_namespace = [name for name in asked if await _where(place.host, name) is place.host]
        of_machine = [name for name in asked if name not in of_namespace]
        for host, names in ((place.host, of_namespace), (outermost(place.host), of_machine)):
            if names:
                part = Sysctls(SysctlOptions(values={name: self.options.values[name] for name in names}))
                old, new = ({name: values[name] for name in names} for values in (before, asked))
                await Item.apply(part, changes, Place(host), old, new)

    async def write(self, place: Place, values: Values) -> None:
        for name, value in values.items():
            try:
                await (await _where(place.host, name)).write_file(path_of(name), str(value))
            except HostError as error:
                raise HostError(f"{name}: {error.message}", place=str(place)) from error

    def is_same(self, key: str, one: object, other: object) -> bool:
        return same_value(path_of(key), str(one), str(other))


async def _where(host: Host, name: str) -> Host:
    """The namespace where it has a setting of its own, else the machine: `net.core.busy_poll` is for all namespaces."""
    outer = outermost(host)
    if outer is host or (path_of(name).startswith(_NETWORK) and await host.read_file(path_of(name)) is not None):
        return host
    return outer


def path_of(name: str) -> str:
    """The file of a sysctl: ``net.ipv4.conf.eth0/100.forwarding`` is that of the VLAN eth0.100."""
    return "/proc/sys/" + name.translate(str.maketrans("./", "/."))
