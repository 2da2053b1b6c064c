"""A machine is prepared for a tester or a DUT: huge pages, CPUs awake, priorities, and cards that stamp frames."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import NotReadyError
from nicbench.hosts.base import Completed
from nicbench.system.adapters.ethtool import StampSetting, parse_stamp_setting
from nicbench.tuning.preparation import (
    HugePages,
    huge_pages_of_meminfo,
    keep_awake,
    prefer_softirq_work,
    raise_huge_pages,
    receive_by_first_queues,
    stamp_all_frames,
    switch_off,
)
from nicbench.tuning.stack import UndoStack

# The CPUs that measure stay awake, and may sleep again afterwards.

CPU_0 = "/sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us"
CPU_1 = "/sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us"
DRIVER = "/sys/devices/system/cpu/cpuidle/current_driver"


async def test_it_is_asked_for_these_cpus_and_put_back(tmp_path: Path) -> None:
    host = FakeHost(files={DRIVER: "haltpoll\n", CPU_0: "0\n", CPU_1: "20\n"})
    changes = UndoStack("run", tmp_path / "folder", tmp_path / "runtime")
    assert await keep_awake(changes, host, (1,)) == (1,)
    assert (host.files[CPU_0].strip(), host.files[CPU_1].strip()) == ("0", "n/a")
    assert await changes.undo_all() == []
    assert host.files[CPU_1].strip() == "20"


async def test_without_idle_states_nothing_is_said_to_be_awake(tmp_path: Path) -> None:
    for driver in ({}, {DRIVER: "none\n"}):
        host = FakeHost(files={CPU_1: "0\n", **driver})
        assert await keep_awake(UndoStack("run", None, tmp_path), host, (1,)) == ()
        assert host.files[CPU_1] == "0\n"


async def test_a_cpu_that_cannot_be_asked_is_left_alone(tmp_path: Path) -> None:
    host = FakeHost(files={DRIVER: "intel_idle\n", CPU_0: "0\n"})
    assert await keep_awake(UndoStack("run", None, tmp_path), host, (0, 1)) == (0,)


# Huge pages are raised by what a run lacks, and put back.

PAGES = "/proc/sys/vm/nr_hugepages"
MEBIBYTE = 2**20
MEMINFO = """\
MemTotal:        8145312 kB
HugePages_Total:      10
HugePages_Free:        6
HugePages_Rsvd:        2
HugePages_Surp:        0
Hugepagesize:       2048 kB
Hugetlb:           20480 kB
"""


def test_pages_promised_to_somebody_are_not_available() -> None:
    assert huge_pages_of_meminfo(MEMINFO) == HugePages(page_kib=2048, total=10, available=4)


def test_a_kernel_without_huge_pages_says_so() -> None:
    assert huge_pages_of_meminfo("MemTotal: 8145312 kB\n") is None


@pytest.mark.parametrize(("needed_mebibytes", "lacking"), [(8, 0), (9, 1), (10, 1), (512, 252)])
def test_what_lacks_is_counted_in_whole_pages(needed_mebibytes: int, lacking: int) -> None:
    assert HugePages(page_kib=2048, total=10, available=4).lacking(needed_mebibytes * MEBIBYTE) == lacking


async def test_their_number_is_raised_and_put_back(tmp_path: Path) -> None:
    host = FakeHost(files={"/proc/meminfo": MEMINFO, PAGES: "10\n"})
    stack = UndoStack("run", None, tmp_path / "runtime")
    await raise_huge_pages(stack, host, 512 * MEBIBYTE)
    assert host.files[PAGES] == "262"

    await stack.undo_all()
    assert host.files[PAGES] == "10"


async def test_enough_pages_are_left_as_they_are(tmp_path: Path) -> None:
    host = FakeHost(files={"/proc/meminfo": MEMINFO, PAGES: "10\n"})
    await raise_huge_pages(UndoStack("run", None, tmp_path / "runtime"), host, 8 * MEBIBYTE)

    assert host.writes == []


async def test_memory_too_fragmented_is_an_error_and_nothing_stays_taken(tmp_path: Path) -> None:
    host = FakeHost(files={"/proc/meminfo": MEMINFO, PAGES: "10\n"})
    host.write_filter = lambda _path, text: "100\n" if text == "262" else text
    with pytest.raises(NotReadyError, match="252 more huge pages"):
        await raise_huge_pages(UndoStack("run", None, tmp_path / "runtime"), host, 512 * MEBIBYTE)

    assert host.files[PAGES] == "10"


# The kernel's packet work goes first on the DUT's CPUs, and gets its old place back.

STAT = "22 (ksoftirqd/1) S 2 0 0 0 -1 69238848 0 0 0 0 5 7 0 0 20 {nice} 1 0 17 0 0 0"


@pytest.fixture
def host() -> FakeHost:
    host = FakeHost(files={"/proc/22/stat": STAT.format(nice=0)})
    host.answer(("pgrep", "-x", "ksoftirqd/1"), "22\n")
    return host


@pytest.fixture
def changes(tmp_path: Path) -> UndoStack:
    return UndoStack("run", tmp_path / "folder", tmp_path / "runtime")


async def test_it_is_raised_and_put_back(host: FakeHost, changes: UndoStack) -> None:
    host.answer(("renice",), "")
    assert await prefer_softirq_work(changes, host, (1,)) == {"ksoftirqd/1": -20}
    host.files["/proc/22/stat"] = STAT.format(nice=-20)
    assert await changes.undo_all() == []
    assert [command for command in host.commands if command[0] == "renice"] == [
        ("renice", "-n", "-20", "-p", "22"),
        ("renice", "-n", "0", "-p", "22"),
    ]


async def test_what_somebody_changed_since_is_left_alone(host: FakeHost, changes: UndoStack) -> None:
    host.answer(("renice",), "")
    await prefer_softirq_work(changes, host, (1,))
    host.files["/proc/22/stat"] = STAT.format(nice=-5)
    (trouble,) = await changes.undo_all()
    assert "left at nice -5" in trouble


async def test_where_the_thread_cannot_be_seen_nothing_is_set(changes: UndoStack) -> None:
    host = FakeHost()
    host.fail(("pgrep",), "")
    assert await prefer_softirq_work(changes, host, (1,)) == {}


# A card stamps all frames while it is needed, and afterwards what it stamped before; the outputs are hwstamp_ctl's.

READ = ("hwstamp_ctl", "-i", "p0")
SET_ALL = (*READ, "-t", "0", "-r", "1")
PTP, ALL = "current settings:\ntx_type 0\nrx_filter 12\n", "current settings:\ntx_type 0\nrx_filter 1\n"
# What the driver of an emulated igb and a kernel without the ioctl say.
OUT_OF_RANGE = Completed((), 34, "", "SIOCSHWTSTAMP failed: Numerical result out of range\n")
SILENT = Completed((), 95, "", "Device driver does not have support for non-destructive SIOCGHWTSTAMP.\n")
MISSING = Completed((), 127, "", "hwstamp_ctl: not found\n")


def card(now: str | Completed, made: str | Completed = ALL) -> FakeHost:
    host = FakeHost()
    host.answer("hwstamp_ctl -i p0", now)
    host.answer("hwstamp_ctl -i p0 -t", made)
    host.answer("ip -j link show", '[{"ifname": "p0", "flags": ["UP"]}]')
    return host


def changed(host: FakeHost) -> list[tuple[str, ...]]:
    return [command for command in host.commands if "-r" in command]


def test_of_two_settings_the_new_one_counts() -> None:
    assert parse_stamp_setting(PTP + "new settings:\ntx_type 1\nrx_filter 1\n") == StampSetting(1, 1)
    with pytest.raises(ValueError, match="neither"):
        parse_stamp_setting("")


async def test_the_card_gets_its_own_setting_back(tmp_path: Path) -> None:
    host, stack = card(PTP, PTP + "new settings:\ntx_type 0\nrx_filter 1\n"), UndoStack("run", None, tmp_path)
    await stamp_all_frames(stack, host, "p0")
    host.answer("hwstamp_ctl -i p0", ALL)
    host.answer("hwstamp_ctl -i p0 -t", PTP)
    assert await stack.undo_all() == []
    assert changed(host) == [SET_ALL, (*READ, "-t", "0", "-r", "12")]


async def test_what_somebody_set_meanwhile_is_left(tmp_path: Path) -> None:
    host, stack = card(PTP), UndoStack("run", None, tmp_path)
    await stamp_all_frames(stack, host, "p0")
    host.answer("hwstamp_ctl -i p0", "current settings:\ntx_type 1\nrx_filter 9\n")
    await stack.undo_all()
    assert changed(host) == [SET_ALL]


async def test_a_card_that_stamps_all_frames_is_left_alone(tmp_path: Path) -> None:
    host, stack = card(ALL), UndoStack("run", None, tmp_path)
    await stamp_all_frames(stack, host, "p0")
    assert await stack.undo_all() == []
    assert changed(host) == []


@pytest.mark.parametrize(
    ("now", "made", "words"),
    [
        (MISSING, ALL, "apt-get install linuxptp"),
        (SILENT, ALL, "cannot be read: Device driver"),
        (PTP, OUT_OF_RANGE, "cannot be set: SIOCSHWTSTAMP failed: Numerical result out of range"),
        (PTP, PTP + "new settings:\ntx_type 0\nrx_filter 12\n", "only some of the frames"),
    ],
    ids=["no tool", "a driver that does not say", "a driver that refuses", "a driver that stamps less"],
)
async def test_a_card_that_cannot_is_refused_with_the_next_step(
    now: str | Completed, made: str | Completed, words: str, tmp_path: Path
) -> None:
    host, stack = card(now, made), UndoStack("run", None, tmp_path)
    with pytest.raises(NotReadyError) as caught:
        await stamp_all_frames(stack, host, "p0")
    assert words in f"{caught.value.message} {caught.value.next_step}"
    assert "`timestamps: tsc`" in str(caught.value.next_step)


# AF_XDP takes frames from the first queues of an adapter alone.

QUEUES = "/sys/class/net/e0/queues/"
TABLE = """\
RX flow hash indirection table for e0 with {} RX ring(s):
    0:      {}
RSS hash key:
Operation not supported
RSS hash function:
    toeplitz: on
"""


def adapter(queues: int, own: str = "0 1 2 3", now: str | None = None) -> FakeHost:
    """An adapter with a table of four entries that ``ethtool -X`` changes; ``own`` is that of its driver."""
    host = FakeHost()
    entries = [now or own]
    host.answer("sh -c", "\n".join(f"{QUEUES}rx-{number}" for number in range(queues)))
    host.answer("ethtool -x e0", lambda command: Completed(command, 0, TABLE.format(queues, entries[0]), ""))

    def change(command: tuple[str, ...]) -> Completed:
        tables = {"default": own, "weight": "0 0 1 1"}
        entries[0] = next((tables[word] for word in command if word in tables), "0 0 0 0")
        return Completed(command, 0, "", "")

    host.answer("ethtool -X e0", change)
    return host


@pytest.mark.parametrize(
    ("host", "last"),
    [
        (adapter(4), ("default",)),
        (adapter(2, own="0 0 1 1"), ("default",)),
        (adapter(2, own="0 1 0 1", now="0 0 1 1"), ("weight", "2", "2")),
    ],
    ids=["in turn", "in blocks", "chosen"],
)
async def test_an_adapter_sends_all_frames_to_the_queues_that_are_read(
    host: FakeHost, last: tuple[str, ...], tmp_path: Path
) -> None:
    changes = UndoStack("run", None, tmp_path)
    await receive_by_first_queues(changes, host, "e0", 1)
    assert ("ethtool", "-X", "e0", "equal", "1") in host.commands
    assert await changes.undo_all() == []
    assert [command for command in host.commands if command[:2] == ("ethtool", "-X")][-1][3:] == last


async def test_an_adapter_with_no_more_queues_is_left_alone(tmp_path: Path) -> None:
    host = adapter(2)
    await receive_by_first_queues(UndoStack("run", None, tmp_path), host, "e0", 2)
    assert not any(command[0] == "ethtool" for command in host.commands)


async def test_an_adapter_that_spreads_frames_as_it_likes_is_refused(tmp_path: Path) -> None:
    host = adapter(4)
    for asked in ("ethtool -x e0", "ethtool -l e0"):
        host.fail(asked, "Operation not supported")
    with pytest.raises(NotReadyError, match="4 receive queues"):
        await receive_by_first_queues(UndoStack("run", None, tmp_path), host, "e0", 1)


async def test_offloads_are_off_during_a_run_and_those_that_were_on_are_on_again_afterwards(tmp_path: Path) -> None:
    before = {"large-receive-offload": "on", "generic-receive-offload": "off", "rx-gro-hw": "off [fixed]"}
    host, now = FakeHost(), dict(before)

    def switch(command: tuple[str, ...]) -> Completed:
        assert command[-2:-1] == ("lro",)
        now["large-receive-offload"] = command[-1]
        return Completed(command, 0, "", "")

    def show(command: tuple[str, ...]) -> Completed:
        features = "".join(f"{name}: {value}\n" for name, value in now.items())
        return Completed(command, 0, f"Features for e0:\n{features}", "")

    host.answer("ethtool -k e0", show)
    host.answer("ethtool -K e0", switch)
    changes = UndoStack("run", None, tmp_path)
    await switch_off(changes, host, "e0", "lro", "gro", "rx-gro-hw", "tls-hw-rx-offload")
    assert now == before | {"large-receive-offload": "off"}
    assert await changes.undo_all() == []
    assert now == before
