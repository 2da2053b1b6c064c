"""Collecting: everything that can be known, and a reason for what cannot. Never an exception."""

from __future__ import annotations

import json

from tests.fakes import FakeHost

from nicbench.core.registry import find
from nicbench.hosts.base import Completed
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.collect import REASONS, collect_host


async def test_a_host_that_says_nothing_gives_null_facts_with_reasons() -> None:
    facts = await collect_host(FakeHost(), ("t0",))
    assert facts["cpu"] is None
    assert facts[REASONS]["cpu"] == "lscpu -J: no output"
    assert facts[REASONS]["clock_source"].endswith("current_clocksource does not exist")


async def test_a_tool_that_writes_something_else_costs_its_fact_alone() -> None:
    host = FakeHost(files={"/etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'})
    host.answer("lscpu -J", '{"cpus": []}')
    facts = await collect_host(host, ())
    assert facts["cpu"] is None
    assert facts[REASONS]["cpu"] == "not understood: KeyError: 'lscpu'"
    assert facts["operating_system"] == "Debian GNU/Linux 12 (bookworm)"


async def test_a_failing_command_gives_its_last_words_as_the_reason() -> None:
    host = FakeHost()
    host.answer(
        "lscpu -J", lambda command: Completed(command, 1, "", "lscpu: first\nlscpu: cannot open /proc/cpuinfo\n")
    )
    facts = await collect_host(host, ())
    assert facts[REASONS]["cpu"] == "lscpu -J: lscpu: cannot open /proc/cpuinfo"


async def test_an_inventory_can_be_written_as_json() -> None:
    assert json.loads(json.dumps(await collect_host(FakeHost(), ("t0",))))


def test_every_fact_is_in_a_file_of_its_own_and_found() -> None:
    found = find("nicbench.system.inventory.facts", Fact)
    assert {"cpu", "kernel", "memory", "clock_source", "hypervisor", "interfaces", "sysctls", "software"} <= set(found)
    assert {"huge_pages", "numa", "rps_cpu_masks", "irqbalance_running", "mitigations"} <= set(found)


async def test_the_name_of_an_interface_cannot_run_a_command() -> None:
    host = FakeHost()
    await collect_host(host, ("t0; reboot",))
    shells = [command[-1] for command in host.commands if command[0] == "sh"]
    assert any("'t0; reboot'" in line for line in shells)
    assert not any("/t0; reboot" in line for line in shells)
