"""A veth pair that cannot be made: the driver is blamed where the kernel says so, and nowhere else."""

from __future__ import annotations

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import HostError, NotReadyError
from nicbench.testbed.interfaces.namespaces import explain_no_pair


@pytest.mark.parametrize("said", ["Error: Unknown device type.", "RTNETLINK answers: Operation not supported"])
def test_a_kernel_without_the_driver_is_told_with_the_step(said: str) -> None:
    error = explain_no_pair(HostError(f"`ip link add` failed with status 2: {said}", place="guest"), FakeHost("guest"))
    assert isinstance(error, NotReadyError)
    assert error.next_step == "the kernel needs the veth driver: modprobe veth"


def test_a_host_that_is_silent_keeps_its_own_words() -> None:
    silent = HostError("`ip link add` gave no answer within 30 s", place="guest", next_step="is it there?")
    assert explain_no_pair(silent, FakeHost("guest")) is silent
