"""Settings decided, applied and verified; every refusal names item, host, interface, what was asked and got."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nicbench.core.errors import HostError, NicbenchError, NotReadyError
from nicbench.core.plan import Outcome, TunedSetting, Values
from nicbench.core.turn import DEFAULT
from nicbench.tuning.changes import Changes
from nicbench.tuning.requests import PlacedRequest
from nicbench.tuning.setting import CannotSetError, values_in_words


async def preview(one: PlacedRequest, configuration: str = DEFAULT, run: int = 1) -> TunedSetting:
    """What would be done at this place: a row with the outcome that is to be expected. Changes nothing."""
    before: Values | None = None
    asked: Values | None = None
    reason: str | None = None
    try:
        if one.item.scope == "device" and one.place.device is None:
            raise CannotSetError("the test has no interface there; name some with `devices`")
        before = await one.item.read_checked(one.place)
        asked = one.item.target_values(before)
        outcome = _expected_outcome(one, before, asked)
    except (CannotSetError, NicbenchError) as error:
        outcome = Outcome.FAILED if one.request.profile is None else Outcome.SKIPPED
        reason = error.message if isinstance(error, NicbenchError) else str(error)
    return TunedSetting(
        configuration=configuration,
        run=run,
        host=one.place.host.name,
        scope=one.item.scope,
        device=one.place.device,
        item=one.item.kind,
        source=one.request.source,
        options=one.request.options.model_dump(mode="json", exclude={"devices"}),
        outcome=outcome,
        reason=reason,
        before=before,
        asked=asked,
        commands=one.item.commands(),
    )


async def tune(
    changes: Changes, every: Iterable[PlacedRequest], configuration: str = DEFAULT, run: int = 1
) -> list[TunedSetting]:
    """Applies everything, in order. What was written and cannot be set refuses the run before anything is changed.

    NotReadyError with every refusal; or with one, where a machine takes a value and then has another.
    """
    every = list(every)
    refuse_failed(every, [await preview(one, configuration, run) for one in every])
    rows: list[TunedSetting] = []
    for one in every:
        row = await preview(one, configuration, run)  # anew: what was applied before may have changed it
        if row.outcome is Outcome.CHANGED:
            row = await _apply(changes, one, row)
        rows.append(row)
        refuse_failed([one], [row])
    return rows


async def look_again(
    every: Sequence[PlacedRequest], rows: Sequence[TunedSetting], *, at_end: bool
) -> list[TunedSetting]:
    """What was asked for as it reads now: ``during``, or ``at_end``. None where it cannot be read any more."""
    return [await _reread(one, row, at_end=at_end) for one, row in zip(every, rows, strict=True)]


def refuse_failed(every: Sequence[PlacedRequest], rows: Sequence[TunedSetting]) -> None:
    """NotReadyError where one of the rows failed; all of them are told at once."""
    failed = [(one, row) for one, row in zip(every, rows, strict=True) if row.outcome is Outcome.FAILED]
    if failed:
        said = "; ".join(f"{one}: {row.reason}" for one, row in failed)
        items = ", ".join(dict.fromkeys(f"`{row.item}`" for _, row in failed))
        raise NotReadyError(
            f"the machine cannot be tuned as the bench file says: {said}",
            place="tuning",
            next_step=f"change or remove {items} under `tuning` in the bench file; nicbench tune shows what can be set",
        )


def find_strayed(every: Sequence[PlacedRequest], rows: Sequence[TunedSetting], *, at_end: bool) -> list[str]:
    """What is not as it was set, a sentence each: somebody else changes it too."""
    said = []
    for one, row in zip(every, rows, strict=True):
        now = row.at_end if at_end else row.during
        was = row.during if at_end else row.asked
        if row.outcome not in (Outcome.CHANGED, Outcome.ALREADY) or now is None or was is None:
            continue
        if differing := one.item.find_differing(was, now):
            when = "at the end of the test" if at_end else "before the first trial"
            found = {key: now.get(key) for key in differing}
            said.append(
                f"{place_words(row)}: {row.item} was {values_in_words(differing)} and is {values_in_words(found)} "
                f"{when}: something changed it"
            )
    return said


def place_words(row: TunedSetting) -> str:
    """Host and interface."""
    return row.host if row.device is None else f"{row.host}, {row.device}"


def _expected_outcome(one: PlacedRequest, before: Values, asked: Values) -> Outcome:
    differs = one.item.find_differing(asked, before)
    if one.item.only_checks and differs and getattr(one.request.options, "required", False):
        got = {key: before.get(key) for key in differs}
        raise CannotSetError(
            f"expected {values_in_words(differs)}, and it is {values_in_words(got)}; nicbench does not change it"
        )
    if one.item.only_checks:
        return Outcome.NOT_MET if differs else Outcome.MET
    return Outcome.CHANGED if differs else Outcome.ALREADY


async def _apply(changes: Changes, one: PlacedRequest, row: TunedSetting) -> TunedSetting:
    """The row once it was set and read back; FAILED or SKIPPED, with the old value put back, where it did not take."""
    before, asked = row.before or {}, row.asked or {}
    to_change = one.item.find_differing(asked, before)
    old = {key: before[key] for key in to_change if key in before}
    entailed = {key: before[key] for key in one.item.entailed_keys(before, to_change)}
    try:
        await one.item.apply(changes, one.place, old | entailed, to_change)
        now = await one.item.read_checked(one.place)
        wrong = one.item.find_differing(to_change, now)
        if not wrong:
            return row
        got = {key: now.get(key) for key in wrong}
        reason = f"asked for {values_in_words(wrong)}, got {values_in_words(got)}"
    except (CannotSetError, HostError) as error:
        reason = f"asked for {values_in_words(to_change)}: {error.message if isinstance(error, HostError) else error}"
    reason += await _put_back(one, old, entailed)
    return row.replace(outcome=_when_it_fails(one), reason=reason)


async def _put_back(one: PlacedRequest, old: Values, entailed: Values) -> str:
    """Now, not by the undo: that would take what the machine made of our value for somebody else's."""
    try:
        now = await one.item.read_checked(one.place)
        if differing := one.item.find_differing(old | entailed, now):
            await one.item.write(one.place, differing | entailed)
    except (CannotSetError, NicbenchError) as error:
        return f"; it could not be put back to {values_in_words(old)}: {error}"
    return ""


def _when_it_fails(one: PlacedRequest) -> Outcome:
    return Outcome.FAILED if one.request.profile is None else Outcome.SKIPPED


async def _reread(one: PlacedRequest, row: TunedSetting, *, at_end: bool) -> TunedSetting:
    if row.asked is None or row.outcome in (Outcome.SKIPPED, Outcome.FAILED):
        return row
    try:
        now = await one.item.read_checked(one.place)
        values: Values | None = {key: now.get(key) for key in row.asked}
    except (CannotSetError, NicbenchError):
        values = None
    if at_end:
        return row.replace(at_end=values)
    strayed = None if values is None else tuple(one.item.find_differing(row.asked, values))
    return row.replace(during=values, strayed=strayed)
