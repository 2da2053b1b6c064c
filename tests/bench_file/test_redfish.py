"""The section ``redfish``: where management controllers are, and no password anywhere."""

from __future__ import annotations

import pytest
from tests.bench_file.conftest import Read

from nicbench.bench_file.reader import WrongBenchFileError

FILE = """nicbench: 1
title: t
lab: {kind: veth}
dut: {kind: kernel-forward}
redfish:
  %s
tests:
  - {name: a, method: throughput}
"""


def test_a_controller_is_named_by_role(read: Read) -> None:
    bench = read(FILE % "tester: {url: 'https://bmc-1/', user: monitor, password_env: BMC_PASSWORD}")
    assert bench.redfish["tester"].url == "https://bmc-1"
    assert bench.controller_of("dut", "dut") is bench.redfish["tester"], "a lab is on one machine"


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("tester: {url: 'http://bmc-1', user: u, password_env: P}", "would send the password in the clear"),
        ("tester: {url: 'https://u:hunter2@bmc-1', user: u, password_env: P}", "has a user or a password in it"),
        ("tester: {url: 'ftp://bmc-1', user: u, password_env: P}", "is no address of a management controller"),
        ("tester: {url: 'https://bmc-1/redfish/v1', user: u, password_env: P}", "has a path"),
        ("tester: {url: 'https://bmc-1', user: u, password_env: 'hunter2!'}", "is no name of an environment variable"),
        ("tester: {url: 'https://bmc-1', user: u, password: hunter2}", "unknown key `redfish.tester.password`"),
        ("tester: {url: 'https://bmc-1', user: u}", "needs `password_env` or `password_file`"),
        ("tester: {url: 'https://bmc-1', user: u, password_file: pw}", "is no path of a file"),
        ("tester: {url: 'https://bmc-1', user: u, password_env: P, verify: false}", "cannot be `false`"),
        ("testr: {url: 'https://bmc-1', user: u, password_env: P}", "`redfish` names an unknown host `testr`"),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_without_a_password(read: Read, written: str, told: str) -> None:
    with pytest.raises(WrongBenchFileError) as caught:
        read(FILE % written)
    assert "b.yaml:6:" in str(caught.value)
    assert told in str(caught.value)
    assert "hunter2" not in str(caught.value)
