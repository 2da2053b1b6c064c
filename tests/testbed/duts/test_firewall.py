"""The firewall: what its rules let pass, and its table with its undo."""

from __future__ import annotations

from nicbench.testbed.duts.router import FirewallOptions, firewall_ruleset


def test_it_drops_what_belongs_to_no_connection_and_has_no_limit_by_itself() -> None:
    text = firewall_ruleset(FirewallOptions())
    assert "policy drop;" in text
    assert "ct state established,related accept" in text
    assert "count over" not in text
    assert "limit rate" not in text


def test_limits_stand_before_a_connection_is_let_in() -> None:
    lines = firewall_ruleset(FirewallOptions(connections=200, connection_rate=300, burst=30)).splitlines()
    rate = next(at for at, line in enumerate(lines) if "limit rate over 300/second burst 30 packets" in line)
    count = next(at for at, line in enumerate(lines) if "ct count over 200" in line)
    allowed = next(at for at, line in enumerate(lines) if line.endswith("== syn accept"))
    assert rate < count < allowed
