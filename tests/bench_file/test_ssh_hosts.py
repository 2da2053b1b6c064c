"""Hosts by ssh as a bench file writes them."""

from __future__ import annotations

import pytest

from nicbench.bench_file import BenchFile
from nicbench.core.errors import BenchFileError

from .conftest import Read

_HEAD = (
    "nicbench: 1\ntitle: x\ndut: {kind: kernel-forward}\ntests: [{name: t, method: throughput}]\n"
    "ports: {t0: {host: tester, address: 0000:03:00.0}, d0: {host: dut, device: e1}}\nlinks: [t0 <-> d0]\n"
)


def _read(read: Read, section: str) -> BenchFile:
    return read(f"{_HEAD}hosts: {{tester: local, dut: {{kind: ssh, {section}}}}}\n")


def test_every_option_has_its_form(read: Read) -> None:
    bench = _read(
        read,
        "address: 10.0.0.5, user: root, port: 2222, key: ~/.ssh/k, known_hosts: k, jump: [a@b:22, c], "
        "connect_timeout: 5 s, lease: 20 s",
    )
    options = bench.hosts["dut"].options.model_dump(exclude_none=True)

    assert options == {
        "address": "10.0.0.5",
        "user": "root",
        "port": 2222,
        "key": "~/.ssh/k",
        "known_hosts": "k",
        "jump": ("a@b:22", "c"),
        "connect_timeout": 5.0,
        "lease": 20.0,
    }


def test_a_single_jump_host_may_stand_alone_and_a_proxy_command_is_a_list(read: Read) -> None:
    assert _read(read, "address: a, jump: b").hosts["dut"].options.model_dump()["jump"] == ("b",)
    assert _read(read, "address: a, proxy_command: [nc, b]").hosts["dut"].options.model_dump()["proxy_command"] == (
        "nc",
        "b",
    )


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("address: a, password: secret", "password"),
        ("address: a, lease: 1 s", "lease"),
        ("address: a, jump: b, proxy_command: [c]", "one of them"),
        ("address: -oProxyCommand=x", "address"),
        ("user: root", "address"),
    ],
)
def test_what_cannot_be_is_refused(read: Read, section: str, said: str) -> None:
    with pytest.raises(BenchFileError) as caught:
        _read(read, section)

    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("section", "step"), [("user: root", "add `address: 10.0.0.5`"), ("address: -v", "write it like `10.0.0.5`")]
)
def test_the_address_of_a_host_is_none_of_a_card(read: Read, section: str, step: str) -> None:
    with pytest.raises(BenchFileError) as caught:
        _read(read, section)
    assert f"{step}, or an alias of `~/.ssh/config`" in str(caught.value.next_step or caught.value)
