"""Whether what a study claims was found again: value by value, and difference by difference between configurations.

Two values, or two differences, are held against each other by the rule of every comparison (``compare/claims.py``).
A value is repeated where no difference from the study's is shown. A difference between configurations is repeated where
it is shown again, in the same direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final

from nicbench.compare.claims import Basis, Comparisons, PointComparison, compare_results
from nicbench.compare.entries import Entry, Settings, compare_settings, open_folder
from nicbench.compare.matching import MatchedEntries, match_points
from nicbench.compare.objections import conditions_of, find_objections
from nicbench.compare.points import seed_of
from nicbench.core.frozen import frozen
from nicbench.core.turn import DEFAULT
from nicbench.store.folder import RunFolder

STUDY: Final = "study"
RERUN: Final = "rerun"


class Repetition(StrEnum):
    """What became of a claim."""

    REPEATED = "repeated"
    NOT_REPEATED = "not repeated"
    NOT_COMPARABLE = "not comparable"


@frozen
class Claim:
    """One claim of a study: what it is about, what the study and the rerun found, and whether it was repeated."""

    about: str
    repetition: Repetition
    why: str
    study: str | None = None
    """What the study found, with its unit; for a difference its sentence. None where it has no value."""
    rerun: str | None = None


@frozen
class Repeated:
    """All claims of one run, with the settings that differ between the study's machine and that of the rerun."""

    claims: tuple[Claim, ...]
    settings: Settings
    rule: tuple[str, ...]

    def count(self, repetition: Repetition) -> int:
        """Counts the claims of which this became."""
        return sum(claim.repetition is repetition for claim in self.claims)


def compare_claims(study: RunFolder, rerun: RunFolder) -> Repeated:
    """Holds every claim of a study's run against a run that repeats it."""
    ours = {entry.configuration: entry for entry in open_folder(study, None, study.run_id)}
    theirs = {entry.configuration: entry for entry in open_folder(rerun, None, rerun.run_id)}
    seed = seed_of(study.run_id, rerun.run_id)
    pairs = {
        name: match_points((replace(entry, name=STUDY), replace(theirs[name], name=RERUN)))
        for name, entry in ours.items()
        if name in theirs
    }
    objections = {name: _find_reasons(found) for name, found in pairs.items()}
    of_values = {
        name: compare_results({entry.name: entry.results for entry in found.entries}, seed=seed)
        for name, found in pairs.items()
        if not objections[name]
    }
    claims: list[Claim] = []
    for name, entry in ours.items():
        if name in of_values:
            claims += _claims_of_values(of_values[name], name)
        else:
            claims.append(
                Claim(
                    name if name != DEFAULT else entry.title,
                    Repetition.NOT_COMPARABLE,
                    objections.get(name, "the rerun has no such configuration"),
                )
            )
    claims += _claims_of_differences(
        _compare_configurations(ours, seed), _compare_configurations(theirs, seed), objections
    )
    first = next(iter(pairs.values()), None)  # one configuration tells the machines apart
    settings = compare_settings(first.entries if first else ())
    rule = next((found.rule for found in of_values.values()), ())
    return Repeated(tuple(claims), settings, rule)


def _find_reasons(found: MatchedEntries) -> str:
    """Returns why two entries may not be compared; empty where they may."""
    every = find_objections([conditions_of(entry) for entry in found.entries])
    return "; ".join(one.text for one in every if one.blocks)


def _compare_configurations(of: dict[str, Entry], seed: int) -> tuple[PointComparison, ...]:
    if len(of) < 2:
        return ()
    turns = any(entry.plan is not None and entry.plan.turns for entry in of.values())
    return compare_results({name: entry.results for name, entry in of.items()}, seed=seed, in_rounds=turns).all


def _claims_of_values(found: Comparisons, configuration: str) -> Iterator[Claim]:
    inside = "" if configuration == DEFAULT else f"{configuration}: "
    for one in found.all:
        basis = one.claim.basis
        repetition = (
            Repetition.NOT_REPEATED
            if basis.is_shown
            else Repetition.NOT_COMPARABLE
            if basis in (Basis.TOO_FEW, Basis.DISTURBED)
            else Repetition.REPEATED
        )
        about = f"{inside}{one.point.words}, {one.value.quantity.name}"
        why = one.claim_text
        if repetition is Repetition.REPEATED and (power := one.could_show):
            why = f"{why}; {power}"
        yield Claim(about, repetition, why, *(_median(one, number) for number in (0, 1)))
    for side, point in found.only:
        if side == STUDY:
            yield Claim(f"{inside}{point.words}", Repetition.NOT_COMPARABLE, "the rerun has no such point")


def _median(one: PointComparison, number: int) -> str | None:
    side = (one.comparison.first, one.comparison.second)[number]
    return None if side.sample.median is None else one.value.quantity.format_value(side.sample.median)


def _claims_of_differences(
    study: Sequence[PointComparison], rerun: Sequence[PointComparison], objections: dict[str, str]
) -> Iterator[Claim]:
    again = {_key_of(one): one for one in rerun}
    for one in study:
        if not one.claim.basis.is_shown:
            continue
        other = again.get(_key_of(one))
        names = (one.comparison.first.name, one.comparison.second.name)
        reasons = dict.fromkeys(reason for name in names if (reason := objections.get(name)))
        if reasons:
            repetition, why = Repetition.NOT_COMPARABLE, "; ".join(reasons)
        elif other is None:
            repetition, why = Repetition.NOT_COMPARABLE, "the rerun did not measure both"
        elif other.claim.basis.is_shown:
            is_same = other.claim.higher == one.claim.higher
            repetition = Repetition.REPEATED if is_same else Repetition.NOT_REPEATED
            why = other.claim_text
        else:
            few = other.claim.basis in (Basis.TOO_FEW, Basis.DISTURBED)
            repetition = Repetition.NOT_COMPARABLE if few else Repetition.NOT_REPEATED
            why = other.claim_text
        about = f"{one.point.words}, {one.value.quantity.name}: {' and '.join(names)}"
        yield Claim(about, repetition, why, one.claim_text, None if other is None else other.claim_text)


def _key_of(one: PointComparison) -> tuple[object, ...]:
    return one.point, one.value.name, one.comparison.first.name, one.comparison.second.name
