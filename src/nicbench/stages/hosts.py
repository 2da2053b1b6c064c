"""Before the testbed: the live hosts of a bench file, each once, those that others stand on first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nicbench.bench_file.models import BenchFile
from nicbench.hosts import hosts_of
from nicbench.hosts.base import Host
from nicbench.hosts.local import LocalHost
from nicbench.hosts.vm import VmHost
from nicbench.tuning.changes import Changes
from nicbench.vm.booting import boot


async def make_hosts(bench: BenchFile, changes: Changes) -> Mapping[str, Host]:
    """Every host by its name; virtual machines are booted. NotReadyError where one does not come up."""
    guests = {name: host.options for name, host in hosts_of(bench.hosts).items() if isinstance(host, VmHost)}
    return hosts_of(bench.hosts, await boot(guests, changes, LocalHost("local")))


def machine_of_lab(bench: BenchFile, hosts: Mapping[str, Host]) -> Host:
    """The host that the lab of a bench file is made on: this machine, or the one that `on` names."""
    return LocalHost("local") if bench.lab is None or bench.lab.on is None else hosts[bench.lab.on]


def of_hosts(hosts: Mapping[str, Host]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """What the report says plainly of the hosts, and the fact ``hosts``: how each was made that was not there."""
    statements = dict.fromkeys(sentence for host in hosts.values() for sentence in host.statements())
    made = {name: told for name, host in hosts.items() if (told := host.disclosure())}
    return tuple(statements), {"hosts": made} if made else {}


def making_in_words(bench: BenchFile) -> str:
    """``making the testbed``, and what of it takes its time."""
    guests = [name for name, choice in bench.hosts.items() if choice.plugin.made_here]
    return f"making the testbed: {', '.join(guests)} is booted" if guests else "making the testbed"


def starts_hosts(bench: BenchFile) -> bool:
    """Whether a host is named that is not there before it is booted."""
    return any(choice.plugin.made_here for choice in bench.hosts.values())
