"""IPsec between two gateways: what this kernel refuses is told without a key. Frames pass it in test_layers_vm.py."""

from __future__ import annotations

import re
import subprocess

import pytest
from lab import Wires
from tests.fakes import FakeHost, NotedChanges

from nicbench.core.errors import NotReadyError
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.testbed.duts.encrypting import Ipsec, IpsecOptions, passage_ruleset
from nicbench.tuning.stack import UndoStack

CIPHERS = ("aes-128-gcm", "aes-256-gcm", "aes-128-cbc-sha256")


@pytest.mark.parametrize("cipher", CIPHERS)
async def test_keys_go_by_standard_input_and_into_no_message(cipher: str) -> None:
    dut, host = Ipsec(IpsecOptions.model_validate({"cipher": cipher})), FakeHost()
    keys = dut._make_keys()
    secrets = [word for word in keys if word.startswith("0x")]
    await dut._add_state(host, NotedChanges(), 0, 0, keys)
    assert not any(secret in " ".join(command) for command in host.commands for secret in secrets)
    assert not any(secret in " ".join(dut._made) for secret in secrets)
    host.fail(("ip", "-batch"), "RTNETLINK answers: Function not implemented", status=2)
    with pytest.raises(NotReadyError, match=f"no security association of {cipher}") as caught:
        await dut._add_state(host, NotedChanges(), 0, 1, keys)
    assert "0x" not in str(caught.value)


@pytest.mark.lab
async def test_what_a_real_kernel_refuses_is_told_without_a_key(lab: Wires, changes: UndoStack) -> None:
    dut = Ipsec(IpsecOptions(offload="crypto"))  # by the port of a lab, which offloads nothing
    host = NetnsHost(LocalHost(), lab.dut)
    with pytest.raises(NotReadyError, match="no security association of aes-128-gcm with offload crypto") as caught:
        await dut._add_state(host, changes, 0, 0, dut._make_keys())
    assert re.search("[0-9a-f]{16}", str(caught.value)) is None
    assert await changes.undo_all() == []


@pytest.mark.lab
def test_the_kernel_takes_the_counters_of_the_wire(lab: Wires) -> None:
    text = passage_ruleset("d0", Ipsec.carrier)
    in_dut = ("ip", "netns", "exec", lab.dut, "nft")
    subprocess.run((*in_dut, "-f", "-"), input=text, text=True, check=True)
    shown = subprocess.run((*in_dut, "list", "ruleset"), capture_output=True, text=True, check=True).stdout
    assert "ip protocol esp counter name" in shown
