"""l3fwd: its command line, rules and build, without one."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import HostError, NotReadyError, UsageError
from nicbench.doctor.base import State, build_on_this_machine
from nicbench.doctor.checks.software import judge_l3fwd, judge_testpmd
from nicbench.engine.binaries import deploy_file
from nicbench.hosts.base import Completed
from nicbench.hosts.kinds.local import LocalHost
from nicbench.testbed.duts import l3fwd as builder
from nicbench.testbed.duts._dpdk import ask_telemetry, port_statistics, queue_counters
from nicbench.testbed.duts.l3fwd import (
    L3fwd,
    L3fwdOptions,
    check_map,
    command_line,
    config_argument,
    default_map,
    rules,
)
from nicbench.testbed.labs.memif import MemifOptions
from nicbench.tuning.stack import UndoStack

from .memif_testbed import memif_testbed

MAIN_C = f"static struct x = {{\n\t{builder.REQUIRED},\n}};\n"
BUILD = builder.L3fwdBuild(sources="22.11.11-0", library="22.11.11", compiler="cc 12", patch=builder.PATCH)


def test_each_test_network_leads_to_its_port_with_groups_written_out() -> None:
    assert rules(4, 2) == "R198.18.0.0/16 0\nR198.19.0.0/16 1\n"
    assert rules(6, 2).splitlines()[1] == "R2001:0002:0000:8000:0000:0000:0000:0000/50 1"


def test_with_one_port_both_networks_lead_to_it() -> None:
    assert rules(4, 1) == "R198.18.0.0/16 0\nR198.19.0.0/16 0\n"


def test_of_more_ports_each_has_a_network_of_its_own() -> None:
    for ip in (4, 6):
        routes = [line.split() for line in rules(ip, 4).splitlines()]
        assert [port for _, port in routes] == ["0", "1", "2", "3"]
        assert len({network for network, _ in routes}) == 4


def test_between_more_ports_every_way_is_routed() -> None:
    testbed = memif_testbed(FakeHost(), MemifOptions(ports=4))
    for ip in (4, 6):
        ways = L3fwd(L3fwdOptions()).addressing(testbed, ip)
        networks = {int(line.split()[1]): line.split()[0].removeprefix("R") for line in rules(ip, 4).splitlines()}
        assert len(ways) == 12
        for way in ways:
            assert way.destination_mac == testbed.dut_ports[way.transmit].mac
            assert ip_address(way.destination_address) in ip_network(networks[way.receive])


def test_ports_are_given_to_cores_in_turn() -> None:
    assert config_argument(default_map(2, 1)) == "(0,0,0),(1,0,0)"
    assert config_argument(default_map(2, 2)) == "(0,0,0),(1,0,1)"


@pytest.mark.parametrize("entries", [((0, 0, 1), (1, 0, 0)), ((0, 1, 0), (1, 0, 0)), ((2, 0, 0),)])
def test_a_map_that_names_what_is_not_there_is_refused(entries: tuple[tuple[int, int, int], ...]) -> None:
    with pytest.raises(UsageError, match="is out of range"):
        check_map(entries, 2, 1)


def test_a_map_that_leaves_a_port_out_is_refused() -> None:
    with pytest.raises(UsageError, match="each queue of each port once"):
        check_map(((0, 0, 0),), 2, 1)


def test_the_command_line_says_every_setting() -> None:
    command = command_line(L3fwdOptions(memory=2**28), memif_testbed(FakeHost()), (1,), "prefix", "/run/x")
    for word in (
        "--lcores=0@1", "256", "--file-prefix=prefix", "--in-memory", "-P", "0x3", "--config=(0,0,0),(1,0,0)",
        "--lookup=lpm", "--rule_ipv4=/run/x/ipv4.cfg", "--parse-ptype", "--eth-dest=1,02:6e:62:00:00:01",
    ):  # fmt: skip
        assert word in command
    one_port = memif_testbed(FakeHost(), MemifOptions(topology="same-port"))
    looped = command_line(L3fwdOptions(), one_port, (1,), "prefix", "/run/x")
    assert looped[looped.index("-p") + 1] == "0x1"


def test_one_line_of_its_sources_is_changed_and_others_are_not_guessed_at() -> None:
    (edit,) = builder.DEFAULT.edits
    assert builder.REPLACEMENT in builder.edit_source(MAIN_C, *edit)
    assert builder.REQUIRED not in builder.edit_source(MAIN_C, *edit)
    with pytest.raises(NotReadyError, match="of another version"):
        builder.edit_source("int main(void) {}", *edit)


def test_what_its_sources_fix_makes_a_program_of_its_own_with_the_edits_named() -> None:
    constants = builder.Constants(burst=64, mbuf_cache=512, rss="udp")
    assert builder.program(constants) != builder.program()
    assert [file for file, _, _ in constants.edits] == ["main.c", "l3fwd.h", "l3fwd.h", "main.c"]
    assert "`#define MAX_PKT_BURST     32` became `#define MAX_PKT_BURST     64`" in constants.patch
    assert "RTE_ETH_RSS_UDP" in constants.patch


def test_queues_go_to_cores_in_turn_and_the_map_names_each_once() -> None:
    assert default_map(1, 2, 4) == ((0, 0, 0), (0, 1, 1), (0, 2, 0), (0, 3, 1))
    assert len({core for _, _, core in default_map(2, 8, 4)}) == 8  # as published: 4 queues a port, 8 cores
    with pytest.raises(UsageError, match="each queue of each port once: 1 x 2 entries"):
        check_map(((0, 0, 0), (0, 0, 0)), 1, 1, 2)
    with pytest.raises(UsageError, match="to serve 17 queues"):
        check_map(default_map(1, 1, 17), 1, 1, 17)


async def test_without_sources_the_package_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotReadyError) as refused:
        await builder.build(FakeHost(), cache=tmp_path)
    assert refused.value.next_step == builder.INSTALL_COMMAND


async def test_it_is_built_from_a_patched_copy_and_leaves_a_record(tmp_path: Path) -> None:
    host = FakeHost(files={f"{builder.SOURCES}/l3fwd/main.c": MAIN_C})
    host.answer("pkg-config --modversion libdpdk", "22.11.11\n")
    host.answer("dpkg-query", "22.11.11-0+deb12u1")
    host.answer("cc --version", "cc (Debian) 12.2\nmore\n")
    built = await builder.build(host, cache=tmp_path)
    assert (built.sources, built.library, built.compiler) == ("22.11.11-0+deb12u1", "22.11.11", "cc (Debian) 12.2")
    assert host.files[f"{builder.SOURCES}/l3fwd/main.c"] == MAIN_C
    assert builder.REPLACEMENT in host.files[f"{tmp_path}/l3fwd.new/l3fwd/main.c"]
    assert json.loads(host.files[f"{tmp_path}/l3fwd.new/build.json"])["patch"] == builder.PATCH


async def test_the_cache_folder_that_a_build_makes_can_hold_the_engines_binaries(tmp_path: Path) -> None:
    class Building(LocalHost):
        """This machine, whose compiler and packages answer at once."""

        async def read_file(self, path: str) -> str | None:
            return MAIN_C if path.startswith(builder.SOURCES) else await super().read_file(path)

        async def run(self, command: Sequence[str], **rest: Any) -> Completed:
            if command[0] in ("cp", "make", "cc", "pkg-config", "dpkg-query"):
                for made in ("l3fwd/main.c", "l3fwd/build/l3fwd-shared"):
                    path = tmp_path / "new" / "cache" / "l3fwd.new" / made
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.touch(mode=0o755)
                return Completed(tuple(command), 0, "", "")
            return await super().run(command, **rest)

    folder = tmp_path / "new" / "cache"
    await builder.build(Building(), cache=folder)
    assert os.access(builder.program(cache=folder), os.X_OK)
    assert folder.stat().st_mode & 0o777 == 0o700
    binary = tmp_path / "engine"
    binary.write_text("#!/bin/sh\n")

    class Elsewhere(LocalHost):
        shares_files = False

    assert Path(await deploy_file(Elsewhere(), binary, str(folder))).is_file()


async def test_what_was_built_is_known_by_its_record(tmp_path: Path) -> None:
    assert await builder.read_build(LocalHost(), cache=tmp_path) is None
    program = builder.program(cache=tmp_path)
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    os.chmod(program, 0o755)
    assert await builder.read_build(LocalHost(), cache=tmp_path) is None
    program.with_name("build.json").write_text(BUILD.model_dump_json())
    assert await builder.read_build(LocalHost(), cache=tmp_path) == BUILD


async def test_a_run_without_it_and_its_sources_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builder, "cache_folder", lambda: tmp_path)
    with pytest.raises(NotReadyError) as refused:
        await L3fwd(L3fwdOptions(huge_pages=False)).up(memif_testbed(FakeHost()), UndoStack("x", None, tmp_path))
    assert refused.value.next_step == builder.INSTALL_COMMAND


async def test_nothing_else_is_built() -> None:
    with pytest.raises(UsageError, match="nicbench cannot build testpmd"):
        await build_on_this_machine("testpmd")


def test_the_doctor_names_what_is_missing_and_the_command() -> None:
    assert judge_testpmd("/usr/bin/dpdk-testpmd").state is State.OK
    assert "dpdk-dev" in str(judge_testpmd("").mend_command)
    assert judge_l3fwd(BUILD, has_sources=False).state is State.OK
    assert judge_l3fwd(None, has_sources=True).mend_command == builder.BUILD_COMMAND
    assert str(judge_l3fwd(None, has_sources=False).mend_command).startswith("apt-get install")


async def test_telemetry_is_asked_after_its_greeting(tmp_path: Path) -> None:
    path = str(tmp_path / "telemetry")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(path)
        server.listen(1)

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.send(b'{"version": "DPDK 22.11"}')
                for port in (b"0", b"1"):
                    assert connection.recv(100) == b"/ethdev/stats," + port
                    connection.send(b'{"/ethdev/stats": {"ipackets": 7, "opackets": 5, "q_ipackets": [7, 0]}}')

        thread = threading.Thread(target=answer)
        thread.start()
        answers = await ask_telemetry(LocalHost(), path, "/ethdev/stats,0", "/ethdev/stats,1")
        thread.join()
    assert [port_statistics(answer) for answer in answers] == [{"ipackets": 7, "opackets": 5}] * 2
    assert queue_counters(answers[0], 2) == (7, 0)
    assert queue_counters(answers[0], 3) == ()
    assert port_statistics({"/ethdev/stats": None}) == {}


async def test_a_process_without_telemetry_is_an_error_that_names_its_socket(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"does not answer .*FileNotFoundError") as failed:
        await ask_telemetry(LocalHost(), str(tmp_path / "nothing"), "/ethdev/stats,0")
    assert str(failed.value.place).endswith(str(tmp_path / "nothing"))
