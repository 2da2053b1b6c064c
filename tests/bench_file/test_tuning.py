"""The section `tuning`: items and profiles by host, each with its own options; overlays change one setting."""

from __future__ import annotations

import pytest
from tests.bench_file.conftest import Read

from nicbench.bench_file import WrongBenchFileError

REST = """\
tests: [{name: a, method: throughput, frame_bytes: [64]}]
"""
HEAD = "nicbench: 1\ntitle: t\nlab: {kind: veth}\ndut: {kind: kernel-forward}\n"


def problems(read: Read, tuning: str, head: str = HEAD) -> str:
    with pytest.raises(WrongBenchFileError) as caught:
        read(head + tuning + REST)
    return str(caught.value)


def test_items_are_given_by_host(read: Read) -> None:
    bench = read(HEAD + "tuning:\n  dut: {sysctls: {net.core.busy_poll: 50}}\n" + REST)
    (wish,) = bench.tuning
    assert (wish.role, wish.item.kind, wish.source) == ("dut", "sysctls", "bench file")
    assert wish.options.model_dump() == {"values": {"net.core.busy_poll": 50}}


@pytest.mark.parametrize(
    ("tuning", "said"),
    [
        ("tuning: 3\n", "b.yaml:5:9: `tuning` must be keys and values"),
        ("tuning:\n  dtu: {}\n", "b.yaml:6:3: there is no host `dtu` to tune\n  next: did you mean `dut`?"),
        (
            "tuning:\n  dut: {sysctl: {}}\n",
            "b.yaml:6:9: unknown tuning item `sysctl`\n  next: did you mean `sysctls`?",
        ),
        ("tuning:\n  dut: {sysctls: 3}\n", "b.yaml:6:18: `tuning.dut.sysctls` must be keys and values, not `3`"),
        ("tuning:\n  dut: {sysctls: {../x: 1}}\n", "b.yaml:6:25: `tuning.dut.sysctls.../x` cannot be `../x`"),
        (
            "tuning:\n  dut: {sysctls: {kernel.//.//.//.tmp.x: 1}}\n",
            "b.yaml:6:42: `tuning.dut.sysctls.kernel.//.//.//.tmp.x` cannot be `kernel.//.//.//.tmp.x`",
        ),
        ("tuning:\n  dut: {mtu: {bytes: 90, devices: [../e0]}}\n", "`tuning.dut.mtu.devices[0]` cannot be `../e0`"),
        ("tuning:\n  dut: {mtu: {bytes: 90, devices: [--all]}}\n", "`tuning.dut.mtu.devices[0]` cannot be `--all`"),
        ("tuning:\n  dut: {mtu: {bytes: 90, devices: ['']}}\n", "`tuning.dut.mtu.devices[0]` cannot be ``"),
        ("tuning: {profile: fast}\n", "b.yaml:5:19: unknown tuning profile `fast`"),
    ],
    ids=[
        *("no mapping", "unknown host", "unknown item", "wrong options", "wrong name", "a way out of /proc/sys"),
        *("a way out of /sys/class/net", "an option of a tool", "no interface", "unknown profile"),
    ],
)
def test_what_is_wrong_is_told_with_line_and_column(read: Read, tuning: str, said: str) -> None:
    assert said in problems(read, tuning)


def test_a_simulated_lab_has_no_machine(read: Read) -> None:
    head = "nicbench: 1\ntitle: t\nlab: simulated\ndut: simulated\n"
    said = problems(read, "tuning: {dut: {sysctls: {vm.swappiness: 1}}}\n", head)
    assert "b.yaml:5:1: the simulated lab has no machine to be tuned" in said


def test_a_host_that_takes_no_part_cannot_be_tuned(read: Read) -> None:
    head = (
        "nicbench: 1\ntitle: t\nhosts: {tester: local, other: local}\nports: {t0: {host: tester, device: e0}}\n"
        "dut: {kind: external}\n"
    )
    said = problems(read, "tuning: {other: {sysctls: {vm.swappiness: 1}}}\n", head)
    assert "the host `other` is not part of the tests, so it cannot be tuned" in said


def test_configurations_differ_in_one_setting(read: Read) -> None:
    text = "tuning: {dut: {sysctls: {vm.swappiness: 1, net.core.busy_poll: 50}}}\n"
    over = "configurations:\n  one: {}\n  other: {tuning: {dut: {sysctls: {vm.swappiness: 2}}}}\n"
    bench = read(HEAD + text + over + REST)
    found = [each.tuning[0].options.model_dump()["values"] for each in bench.configurations]
    assert found == [
        {"vm.swappiness": 1, "net.core.busy_poll": 50},
        {"vm.swappiness": 2, "net.core.busy_poll": 50},
    ]
