"""The firewall inside the host's namespace: tables of nftables (iptables' too) with their hooks and rules."""

from __future__ import annotations

import json
from typing import Any, TypedDict

from nicbench.core.described import Facts, Subject, Write
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.subjects import join_texts, part_of


class _Ruleset(TypedDict):
    """How many rules there are, and where the kernel asks them."""

    rules: int
    rules_by_table: dict[str, int]
    hooks: list[str]


def _tell_firewall(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "firewall")
    if found.get("rules") is None:
        return None
    return join_texts(f"{found['rules']} rules" if found["rules"] else "no rules", *found.get("hooks", ()), by="; ")


class Firewall(Fact):
    """From ``nft -j list ruleset``."""

    kind = "firewall"
    shape = _Ruleset
    subjects = (Subject("Firewall", 300, _tell_firewall),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        return parse_ruleset(await output_of(host, "nft", "-j", "list", "ruleset"))


def parse_ruleset(text: str) -> dict[str, Any]:
    """Rules by table, and the chains that packets meet: ``forward, policy drop`` (libnftables-json(5))."""
    rules: dict[str, int] = {}
    hooks: list[str] = []
    for entry in json.loads(text)["nftables"]:
        if "table" in entry:
            rules.setdefault(f"{entry['table']['family']} {entry['table']['name']}", 0)
        elif "rule" in entry:
            table = f"{entry['rule']['family']} {entry['rule']['table']}"
            rules[table] = rules.get(table, 0) + 1
        elif "hook" in entry.get("chain", {}):
            chain = entry["chain"]
            hooks.append(f"{chain['family']} {chain['table']} {chain['hook']}, policy {chain.get('policy', 'accept')}")
    return {"rules": sum(rules.values()), "rules_by_table": rules, "hooks": hooks}
