"""Settings of the kernel and of services that set it: boot parameters, sysctls, tuned, SELinux, connection tracking."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, NicbenchError
from nicbench.core.plan import Values
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import outermost
from nicbench.tuning.changes import Changes
from nicbench.tuning.items.base import DeviceItem, DeviceOptions, ExpectedOptions, FilesItem, Item, Phase
from nicbench.tuning.setting import CannotSetError, Place, same_value

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+$", max_length=100)]


class BootParametersOptions(ExpectedOptions):
    """``boot_parameters: {expected: {isolcpus: 2-5, nohz_full: 2-5, quiet: true}}``; ``false``: not given at all."""

    expected: dict[Name, str | int | bool] = Field(min_length=1, max_length=100)


class BootParameters(Item):
    """What the kernel was booted with: checked, never changed, for it takes a reboot.

    Source: Documentation/admin-guide/kernel-parameters.txt; the parameters are those of /proc/cmdline.

    The value of each that is expected; true for one without a value, false for one that is not given.
    """

    kind = "boot_parameters"
    Options = BootParametersOptions
    options: BootParametersOptions
    scope = "machine"
    phase = Phase.SERVICE
    only_checks = True

    async def read(self, place: Place) -> Values:
        text = await place.host.read_file("/proc/cmdline")
        if text is None:
            raise CannotSetError("/proc/cmdline does not exist")
        given = parameters_of(text)
        return {name: given.get(name.replace("-", "_"), False) for name in self.options.expected}

    def target_values(self, now: Values) -> Values:
        return {name: str(value) if type(value) is int else value for name, value in self.options.expected.items()}


def parameters_of(text: str) -> dict[str, str | bool]:
    """Name and value of each word; quotes keep words together, the last of a name counts, ``-`` is ``_`` in names."""
    found = {}
    word, quoted = "", False
    for letter in text.strip() + " ":
        if letter == '"':
            quoted = not quoted
        elif letter.isspace() and not quoted:
            if word == "--":
                break  # what follows is for init
            name, equals, value = word.partition("=")
            if name:
                found[name.replace("-", "_")] = value if equals else True
            word = ""
        else:
            word += letter
    return found


_TIMEOUT_S = 120.0
_ACTIVE = re.compile(r"^Current active profile:[ \t]*(\S[^\n]*)$", re.MULTILINE)
_NONE = "No current active profile"


class TunedOptions(Frozen):
    """``tuned: network-latency``; ``off`` switches its settings off."""

    profile: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_. -]{0,127}$")


class TunedItem(Item):
    """The profile of tuned, a program that sets much of what is set here; what it sets is not undone piece by piece.

    Source: tuned-adm(8). It comes before all other items, so that these lie on top of what it sets.

    The active profile; ``off`` where it has none.
    """

    kind = "tuned"
    Options = TunedOptions
    options: TunedOptions
    scope = "machine"
    phase = Phase.SERVICE
    alone = "profile"

    async def read(self, place: Place) -> Values:
        try:
            done = await place.host.run(("tuned-adm", "active"), check=False)
        except NicbenchError as error:
            raise CannotSetError("tuned is not installed here") from error
        profile = profile_of(done.stdout)
        if profile is None:
            reason = (done.stderr or done.stdout).strip().splitlines() or ["it says nothing"]
            raise CannotSetError(f"tuned does not say which profile is active: {reason[-1]}")
        return {"profile": profile}

    def target_values(self, now: Values) -> Values:
        return {"profile": self.options.profile}

    async def write(self, place: Place, values: Values) -> None:
        profile = str(values["profile"])
        words = ("off",) if profile == "off" else ("profile", *profile.split())
        await place.host.run(("tuned-adm", *words), timeout_s=_TIMEOUT_S)


def profile_of(text: str) -> str | None:
    """Of the output of ``tuned-adm active``; None where it says neither."""
    found = _ACTIVE.search(text)
    return found[1].strip() if found else "off" if _NONE in text else None


_NETWORK = "/proc/sys/net/"
SysctlsName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_:@-]+([./][A-Za-z0-9_:@-]+)*$", max_length=200)]


class SysctlOptions(Frozen):
    """``sysctls: {net.core.busy_poll: 50}``: any names."""

    values: dict[SysctlsName, int | str] = Field(min_length=1, max_length=200)


class Sysctls(Item):
    """Settings of the kernel by name (sysctl): those of the network in the host's namespace, all others of the machine.

    Source: Documentation/admin-guide/sysctl of the kernel. Names are those of ``sysctl -a``; a dot that is part of a
    name (of a VLAN interface) is written as a slash, as sysctl(8) has it.

    Each is read and written under /proc/sys.
    """

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


_PATH = "/sys/fs/selinux/enforce"
_OFF = "disabled"


class SelinuxOptions(Frozen):
    """``selinux: permissive``; a machine where it is off altogether fulfils that too."""

    mode: Literal["permissive", "enforcing"]


class Selinux(Item):
    """Whether SELinux forbids or only tells: its checks of every packet and system call cost time.

    Source: selinux(8), /sys/fs/selinux/enforce. It is never switched off altogether, which needs a reboot.

    ``disabled``, ``permissive`` or ``enforcing``.
    """

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


class BusyPollingOptions(Frozen):
    """``busy_polling: 50``: microseconds; 0 switches it off."""

    us: int = Field(ge=0, le=1_000_000)


class BusyPolling(FilesItem):
    """How long a program that waits for a packet polls its queue instead of sleeping: less latency for more CPU time.

    Source: Documentation/admin-guide/sysctl/net.rst, busy_poll (poll, select, epoll) and busy_read (reads).

    Of the whole machine: no namespace has its own.
    """

    kind = "busy_polling"
    Options = BusyPollingOptions
    options: BusyPollingOptions
    phase = Phase.TRAFFIC
    alone = "us"
    folder = "/proc/sys/net/core/"
    patterns = ("busy_poll", "busy_read")
    missing = "this kernel does not poll (CONFIG_NET_RX_BUSY_POLL)"

    def target_values(self, now: Values) -> Values:
        return dict.fromkeys(now, str(self.options.us))


_FAMILY = "inet"
_PREFIX = "nicbench_notrack_"


class ConnectionTrackingOptions(DeviceOptions):
    """``connection_tracking: false``."""

    on: bool


class ConnectionTracking(DeviceItem):
    """Whether the packet filter keeps a record of every connection of the test's interfaces, which costs time and
    memory.

    Rules of others are never flushed or changed: putting a firewall back exactly is not possible (counters, sets, what
    manages it), and a machine without one is not what its owner lent. Off is a table of ours, which marks what arrives
    at the interface as not to be tracked (nft(8), notrack); the undo deletes that table. How many rules others have is
    told.

    ``on`` is whether our table is absent, not whether anything tracks; ``rules_of_others`` counts theirs.
    """

    kind = "connection_tracking"
    Options = ConnectionTrackingOptions
    options: ConnectionTrackingOptions
    phase = Phase.TRAFFIC
    alone = "on"

    async def read(self, place: Place) -> Values:
        done = await place.host.run(("nft", "-j", "list", "ruleset"), check=False)
        if done.status != 0:
            reason = (done.stderr.strip().splitlines() or ["no reason"])[-1]
            raise CannotSetError(f"the packet filter cannot be listed: {reason}")
        return values_of_ruleset(done.stdout, table_of(place.device or ""))

    def target_values(self, now: Values) -> Values:
        return {"on": self.options.on}

    async def write(self, place: Place, values: Values) -> None:
        device = place.device or ""
        table = table_of(device)
        if values["on"]:
            await place.host.run(("nft", "delete", "table", _FAMILY, table))
            return
        text = (
            f"table {_FAMILY} {table} {{ chain arriving {{ type filter hook prerouting priority raw; "
            f'iifname "{device}" notrack\n}}\n}}\n'
        )
        await place.host.run(("nft", "-f", "-"), input_text=text)


def table_of(device: str) -> str:
    """The name of our table for an interface, in nft's letters."""
    letters = "".join(letter if letter.isalnum() and letter.isascii() else f"_{ord(letter):x}_" for letter in device)
    return f"{_PREFIX}{letters}"


def values_of_ruleset(text: str, table: str) -> Values:
    """Parses the output of ``nft -j list ruleset`` (libnftables-json(5)); CannotSetError if it is not understood."""
    try:
        objects: list[dict[str, Any]] = json.loads(text or "{}").get("nftables", [])
        ours = any(one.get("table", {}).get("name") == table for one in objects)
        rules = [one["rule"] for one in objects if "rule" in one]
        others = sum(not str(rule.get("table")).startswith(_PREFIX) for rule in rules)
    except (ValueError, AttributeError, TypeError) as error:
        raise CannotSetError(f"the output of nft is not understood: {error}") from error
    return {"on": not ours, "rules_of_others": others}
