"""What identifies a machine is taken out, everywhere and in the same way, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.fakes import FakeHost

from nicbench.core.redaction import Redactor, is_redacted
from nicbench.report import build
from nicbench.system.inventory.base import collect_host, host_name

from ._golden_machine import MAC, SECRETS, golden_machine
from ._synthetic import SyntheticRun


async def redacted_inventory(host: FakeHost, redactor: Redactor) -> dict[str, object]:
    found = await collect_host(host, ("enp59s0f0",))
    redactor.learn_host_name(await host_name(host))
    redactor.learn(found)
    return redactor(found)


def secrets_in(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret.lower() in text.lower()]


async def test_no_identifier_of_a_machine_survives_in_its_inventory() -> None:
    plain = await collect_host(golden_machine(), ("enp59s0f0",))
    there = json.dumps(plain).lower()
    missing = {"e42:a1ff:fe65:8e3e"}  # no tool of this machine prints that address
    assert {secret for secret in SECRETS if secret.lower() not in there} <= missing
    assert not secrets_in(json.dumps(await redacted_inventory(golden_machine(), Redactor())))


async def test_what_tells_of_the_kind_of_machine_stays() -> None:
    found = json.dumps(await redacted_inventory(golden_machine(), Redactor()))
    for kept in (
        "PowerEdge R740",
        "M393A4K40DB3-CWE",
        "PERC H730P Mini",
        "2.19.1",
        "0000:5e:00.0",
        "isolcpus=managed_irq",
    ):
        assert kept in found


async def test_no_identifier_survives_in_a_run_folder_or_its_report(tmp_path: Path) -> None:
    redactor = Redactor()
    host = golden_machine()
    inventory = await collect_host(host, ("enp59s0f0",))
    redactor.learn_host_name(await host_name(host))
    run = SyntheticRun(tmp_path)
    run.start()
    run.folder.redact_with(redactor)
    run.folder.write_json("inventory.json", {"tester": inventory, "dut": inventory})
    plan = run.plan().replace(addressing=({"destination_mac": MAC, "source": f"on {MAC.upper()}"},))
    run.folder.write_json("plan.json", plan)
    path = run.finish()
    build(path)
    for name in ("inventory.json", "plan.json", "summary.json", "journal.ndjson", "report.html"):
        assert not secrets_in((path / name).read_text()), name


def test_one_value_has_one_token_in_all_its_forms() -> None:
    redact = Redactor()
    text = "fe80::e42:a1ff:fe65:8e3e 0C-42-A1-65-8E-3E enx0c42a1658e3e 0c42a1.fffe.658e3e"
    found = redact({"mac": "0c:42:a1:65:8e:3e", "text": text})
    token = found["mac"]
    assert found["text"] == f"fe80::{token} {token} enx-{token} {token}"


def test_another_run_gives_another_token() -> None:
    assert Redactor()({"serial": "7QX4N53"}) != Redactor()({"serial": "7QX4N53"})


def test_a_serial_number_is_found_where_no_field_says_so() -> None:
    redact = Redactor()
    redact.learn({"serial": "7QX4N53"})
    assert "7QX4N53" not in redact({"note": "board 7QX4N53, rack 4"})["note"]
    assert redact({"note": "board 7QX4N53, rack 4"})["note"].endswith(", rack 4")


def test_neither_broadcast_nor_what_only_looks_like_an_address_is_touched() -> None:
    text = "ff:ff:ff:ff:ff:ff 0000:3b:00.0 12:34:56 ffffffff,00000003 1.2.3 2026-11-22T01:02:03Z 10:22:33:44 b8f6ec7c"
    assert Redactor()({"x": text}) == {"x": text}
    key = ":".join(f"{number:02x}" for number in range(40))
    assert Redactor()({"receive_hashing": {"key": key}}) == {"receive_hashing": {"key": key}}


def test_a_tools_filler_is_no_identifier() -> None:
    assert Redactor()({"serial": "None", "note": "None of them"}) == {"serial": "None", "note": "None of them"}


def test_a_neighbour_that_names_itself_is_redacted_where_others_only_have_a_name() -> None:
    found = Redactor()(
        {"lldp_neighbours": {"eth0": {"name": "sw1-lab7", "port": "Ethernet1/1"}}, "fans": {"name": "Fan1A"}}
    )
    assert found["lldp_neighbours"]["eth0"]["name"].startswith("host-")
    assert found["lldp_neighbours"]["eth0"]["port"] == "Ethernet1/1"
    assert found["fans"] == {"name": "Fan1A"}


def test_a_host_called_by_a_common_word_does_not_garble_the_settings() -> None:
    redact = Redactor()
    redact.learn_host_name("net.example.org")
    assert redact({"net.core.busy_poll": "0"}) == {"net.core.busy_poll": "0"}
    assert "net.example.org" not in redact({"note": "on net.example.org"})["note"]


def test_numbers_and_structure_stay() -> None:
    content = {"a": [1, 2.5, None, True], "b": {"c": "text"}}
    assert Redactor()(content) == content


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_redacting_twice_is_redacting_once(content: object) -> None:
    redact = Redactor(b"key")
    once = redact(content)
    assert redact(once) == once


def test_a_token_is_known_as_one() -> None:
    assert is_redacted(Redactor()({"serial": "7QX4N53"})["serial"])
    assert not is_redacted("serial-number 7")
