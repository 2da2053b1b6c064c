"""What the doctor says of a machine on which a virtual machine is to boot."""

from __future__ import annotations

from pathlib import Path

from nicbench.doctor.base import State
from nicbench.doctor.checks.software import judge_emulator, judge_kernel, judge_kvm, judge_memory
from nicbench.system.inventory.base import parse_meminfo
from nicbench.testbed.vm.emulator import Emulator
from nicbench.testbed.vm.kernel import Kernel

QEMU = Path("/usr/bin/qemu-system-x86_64")


def test_an_old_qemu_works_without_the_card_and_the_step_to_a_newer_one_is_named() -> None:
    check = judge_emulator(Emulator(QEMU, "7.2.22", has_igb=False))
    assert check.state is State.WARNING
    assert "QEMU 7.2.22" in check.text
    assert "igb" in check.text
    assert check.mend_command == "scripts/fetch-vm"
    assert judge_emulator(Emulator(QEMU, "10.0.2", has_igb=True)).state is State.OK


def test_what_was_never_fetched_is_no_lack_of_the_rest_of_nicbench() -> None:
    for check in (judge_emulator(None), judge_kernel(None)):
        assert check.state is State.WARNING
        assert check.mend_command == "scripts/fetch-vm"


def test_the_kernel_that_is_booted_is_named() -> None:
    kernel = Kernel("6.1.0-56-amd64", Path("/cache/boot/vmlinuz-6.1.0-56-amd64"), Path("/cache/lib"))
    assert "6.1.0-56-amd64" in judge_kernel(kernel).text


def test_a_machine_without_kvm_emulates_and_lacks_nothing() -> None:
    check = judge_kvm(is_there=False, may_be_used=False)
    assert check.state is State.OK
    assert "emulated" in check.text


def test_kvm_that_is_there_but_not_for_this_user_is_told_with_the_step() -> None:
    check = judge_kvm(is_there=True, may_be_used=False)
    assert check.state is State.WARNING
    assert "kvm" in (check.mend_command or "")


def test_a_device_on_which_no_kernel_comes_up_is_not_taken_for_kvm() -> None:
    texts = [judge_kvm(is_there=True, may_be_used=True, works=works).text for works in (None, False, True)]
    assert ["emulated" in text for text in texts] == [False, True, False]
    assert "is tried" in texts[0]


def test_too_little_memory_is_known_before_a_guest_is_booted() -> None:
    meminfo = "MemTotal:        2000000 kB\nMemFree:          100000 kB\nMemAvailable:    1048576 kB\n"
    check = judge_memory(parse_meminfo(meminfo).get("MemAvailable"))
    assert check.state is State.WARNING
    assert "memory" in check.text
    assert judge_memory(8 << 30).state is State.OK


def test_a_kernel_that_says_nothing_of_its_memory_is_not_taken_for_an_empty_one() -> None:
    assert "does not say" in judge_memory(None).text
