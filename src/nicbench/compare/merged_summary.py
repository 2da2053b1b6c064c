"""Makes summaries: of a run as far as it went, and of all compared entries, with rates on one port basis."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

from nicbench import __version__
from nicbench.compare.entry import Entry
from nicbench.compare.matching import MatchedEntries, point_of, rename_results
from nicbench.compare.objections import list_names
from nicbench.compare.points import seed_of
from nicbench.compare.scopes import divide_scope, ports_at_once, ports_of_sum
from nicbench.core.pattern import per_port_of
from nicbench.core.plan import Plan, PlannedTest
from nicbench.core.registry import find
from nicbench.core.result import Bounded, Result, ResultVerdict, Summary, Value, name_of_test
from nicbench.core.turn import ONCE, Runs
from nicbench.methods.base import Method, main_values
from nicbench.stats.runs import count_runs, summarise_over_runs


def summarise_points(results: Sequence[Result], asked: Runs, run_id: str) -> tuple[Result, ...]:
    """Summarises each point over all runs of its configuration, with statistics of its main values."""
    return _restate(summarise_over_runs(results, asked, main_values, seed_of(run_id)))


def unfinished_summary(results: Sequence[Result], plan: Plan | None, run_id: str, title: str) -> Summary:
    """Returns an ``incomplete`` summary of the results so far, for a run that is still going or ended without one."""
    asked = plan.runs if plan else ONCE
    over = summarise_points(results, asked, run_id)
    return Summary(
        title=title,
        verdict=ResultVerdict.INCOMPLETE,
        results=tuple(results),
        configurations=plan.compared if plan else (),
        over_runs=over,
        runs=count_runs(asked, results, over, complete=False),
    )


_RATES: Final = ("_frames_per_s", "_bits_per_s")


def divide_by_ports(entries: Iterable[Entry]) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """Divides rates that are sums of ports by the number of ports; returns the entries and sentences on the changes."""
    found, changed = [], []
    for entry in entries:
        results = tuple(_divide(result) for result in entry.results)
        if results != entry.results:
            changed.append(entry.name)
        found.append(replace(entry, results=results))
    return tuple(found), _explain_division(changed)


def _explain_division(names: Sequence[str]) -> tuple[str, ...]:
    if not names:
        return ()
    said = (
        f"rates of {list_names(names)} are printed as the sum of ports and were divided by their number (--per-port): "
        "all ports are taken to have sent at once, and to have carried as much"
    )
    return (said,)


def _divide(result: Result) -> Result:
    ports = ports_of_sum(result.scope)
    if ports is None:
        return result
    values = {name: _share(value, ports) if name.endswith(_RATES) else value for name, value in result.values.items()}
    imported = result.imported
    if imported is not None:  # the printed digits are not those of the divided rates
        printed = {name: one for name, one in imported.printed.items() if not name.endswith(_RATES)}
        imported = imported.replace(printed=printed)
    return result.replace(values=values, scope=divide_scope(result.scope), imported=imported)


def _share(value: Value, ports: int) -> Value:
    if isinstance(value, Bounded):
        bounds = (value.value, value.lower, value.upper)
        middle, lower, upper = (None if bound is None else bound / ports for bound in bounds)
        return value.replace(value=middle, lower=lower, upper=upper)
    return value / ports if isinstance(value, int | float) and not isinstance(value, bool) else value


def merge_summaries(found: MatchedEntries, title: str) -> Summary:
    """Merges the entries' results; points that only one entry has are left out (see ``MatchedEntries.lonely``)."""
    entries = tuple(
        replace(entry, results=tuple(one for one in entry.results if len(found.has[point_of(one)]) > 1))
        for entry in found.entries
    )
    results = rename_results(entries)
    names = tuple(entry.name for entry in entries)
    verdicts = [entry.verdict for entry in entries]
    return Summary(
        title=title,
        verdict=max(verdicts, key=list(ResultVerdict).index),
        results=results,
        configurations=names,
        over_runs=_summarise_entries(results, names) if any(entry.runs > 1 for entry in entries) else (),
    )


def _summarise_entries(results: Sequence[Result], names: Iterable[str]) -> tuple[Result, ...]:
    """Returns medians and ranges for each entry that has several runs, and the plain results of every other entry."""
    found: list[Result] = []
    for name in names:
        own = tuple(result for result in results if result.configuration == name)
        found += _restate(summarise_over_runs(own)) or own
    return tuple(found)


def unify_scopes(summary: Summary) -> Summary:
    """Gives each test one scope. Where entries differ in it, it names all of them: with ``--force`` only, or where
    rates are published as per port and it is not said how many ports sent at once.
    """
    scopes: dict[tuple[str, str], dict[tuple[str, bool], None]] = {}
    for result in summary.results:
        said = (result.scope, result.imported is not None)
        scopes.setdefault((name_of_test(result, {}), result.method), {})[said] = None

    def plain(results: tuple[Result, ...]) -> tuple[Result, ...]:
        return tuple(
            result.replace(scope=_scope_of_all(scopes[name_of_test(result, {}), result.method])) for result in results
        )

    return summary.replace(results=plain(summary.results), over_runs=plain(summary.over_runs))


def _scope_of_all(said: Collection[tuple[str, bool]]) -> str:
    """Returns one scope for those of all entries, each with whether it was imported."""
    found = dict.fromkeys(scope for scope, _ in said)
    if len(found) == 1:
        return next(iter(found))
    known = {scope for scope, is_imported in said if not (is_imported and scope == per_port_of(1))}
    ports = ports_at_once(known)
    if ports:
        return f"per port (of {ports} that send at once; of published ones it is not said how many did)"
    return f"not all on the same basis ({'; '.join(found)})"


def plan_of_all(entries: Sequence[Entry], title: str) -> Plan:
    """Makes the plan that tables read: loss ratios on which all entries agree, and whether the line rate is nominal."""
    plans = [entry.plan for entry in entries if entry.plan is not None]
    goals: dict[tuple[str, str], dict[str, set[float]]] = {}
    for plan in plans:
        for test in plan.tests:
            search = test.options.get("search")
            own = goals.setdefault((test.name, test.method), {})
            for name, ratio in (search.get("goals") or {}).items() if isinstance(search, dict) else ():
                own.setdefault(str(name), set()).add(float(ratio))
    nominal = {plan.link_is_nominal for plan in plans}
    links = {plan.link_bits_per_s for plan in plans}
    return Plan(
        run_id="",
        title=title,
        nicbench_version=__version__,
        seed=0,
        link_is_nominal=nominal == {True},
        link_bits_per_s=links.pop() if len(links) == 1 else None,
        tests=tuple(
            PlannedTest(
                name=name,
                method=method,
                description="",
                options={"search": {"goals": {goal: min(ratios) for goal, ratios in own.items() if len(ratios) == 1}}},
                points=0,
                estimate_s=0.0,
            )
            for (name, method), own in goals.items()
        ),
    )


def _restate(results: Iterable[Result]) -> tuple[Result, ...]:
    """Returns results over several runs, with the texts that their methods build from the medians."""
    methods = find("nicbench.methods", Method)
    return tuple(
        result.replace(values=methods[result.method].restate_values(result.values))
        if result.method in methods
        else result
        for result in results
    )
