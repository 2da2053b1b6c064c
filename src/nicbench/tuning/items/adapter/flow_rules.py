"""Rules that send chosen flows to a receive queue of an adapter (flow director, ntuple): ``ethtool -N`` (ethtool(8)).

Rules of others are counted, and never touched. The switch ``ntuple`` is put back with the rules.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from nicbench.core.headers import FlowRule
from nicbench.core.plan import Values
from nicbench.system.adapters.ethtool_queues import parse_features, parse_limits
from nicbench.system.adapters.flow_rules import PlacedRule, parse_flow_rules
from nicbench.tuning.items._adapter import answer_of, device_of, run_setter
from nicbench.tuning.items.base import DeviceOptions, Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

_NTUPLE = "ntuple-filters"
_RULES, _SWITCH = "rules", "ntuple"


class FlowRulesOptions(DeviceOptions):
    """``rules``: frames of a ``flow`` (``udp4``) with these addresses and ports go to a ``queue``; ``null`` drops."""

    rules: tuple[FlowRule, ...] = Field(min_length=1, max_length=1024)

    @field_validator("rules")
    @classmethod
    def _differ(cls, rules: tuple[FlowRule, ...]) -> tuple[FlowRule, ...]:
        if len({rule.words[:-1] for rule in rules}) < len(rules):
            raise ValueError("two rules are for the same frames")
        return rules


class FlowRules(Item):
    """After channels and RSS, which may drop rules."""

    kind = "flow_rules"
    Options = FlowRulesOptions
    options: FlowRulesOptions
    scope = "device"
    phase = Phase.STEERING
    alone = "rules"

    async def read(self, place: Place) -> Values:
        features = await answer_of(place, parse_features, "ethtool", "-k", device_of(place))
        switch = features.get(_NTUPLE)
        if switch is None or (switch.fixed and not switch.on):
            raise CannotSetError(
                "the driver takes no rules for flows (ntuple-filters of `ethtool -k` is off and fixed)"
            )
        rules = await self._present(place)
        words: list[Any] = sorted(" ".join(each.rule.words) for each in rules if each.rule is not None)
        return {_SWITCH: switch.on, _RULES: words, "others": sum(each.rule is None for each in rules)}

    def target_values(self, now: Values) -> Values:
        found = now[_RULES]
        present = [str(words) for words in found] if isinstance(found, list) else []
        ours = [" ".join(rule.words) for rule in self.options.rules]
        criteria = {_criteria(words) for words in present if words not in ours}
        taken = [words for words in ours if _criteria(words) in criteria]
        if taken:
            raise CannotSetError(f"a rule of others is for the same frames: {taken[0]}")
        rules: list[Any] = sorted({*present, *ours})
        return {_SWITCH: True, _RULES: rules}

    async def write(self, place: Place, values: Values) -> None:
        device = device_of(place)
        if values.get(_SWITCH) is True:
            await run_setter(place, "ethtool", "-K", device, "ntuple", "on")
        if isinstance(wanted := values.get(_RULES), list):
            await self._write_rules(place, {str(words) for words in wanted})
        # Some drivers forget every rule when it is switched off: it comes last.
        if values.get(_SWITCH) is False:
            await run_setter(place, "ethtool", "-K", device, "ntuple", "off")

    async def _write_rules(self, place: Place, wanted: set[str]) -> None:
        device = device_of(place)
        present = {
            " ".join(each.rule.words): each.place for each in await self._present(place) if each.rule is not None
        }
        await self._require_queues(place, wanted - present.keys())
        for words in sorted(present.keys() - wanted):
            await run_setter(place, "ethtool", "-N", device, "delete", str(present[words]))
        for words in sorted(wanted - present.keys()):
            await run_setter(place, "ethtool", "-N", device, *words.split())

    async def _require_queues(self, place: Place, wanted: set[str]) -> None:
        """Refuses a queue that there is not: some drivers take such a rule, and drop its frames."""
        if not wanted:
            return
        limits = await answer_of(place, parse_limits, "ethtool", "-l", device_of(place))
        there = sum(limits.get(kind, {}).get("current") or 0 for kind in ("rx", "combined"))
        beyond = [words for words in sorted(wanted) if there and (FlowRule.of_words(words).queue or 0) >= there]
        if beyond:
            raise CannotSetError(f"there are {there} receive queues, from 0 on, and a rule names another: {beyond[0]}")

    async def _present(self, place: Place) -> tuple[PlacedRule, ...]:
        return await answer_of(place, parse_flow_rules, "ethtool", "-n", device_of(place))


def _criteria(words: str) -> str:
    """The frames that a rule is for, without what becomes of them."""
    return words.rpartition(" action ")[0]
