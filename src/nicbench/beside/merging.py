"""One summary of several entries, each a configuration of it: what the report's tables and figures lay side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from nicbench import __version__
from nicbench.beside.entry import Entry
from nicbench.beside.matching import Matched, point_of, with_names
from nicbench.methods.base import told_over_runs
from nicbench.model.plan import Plan, PlannedTest
from nicbench.model.result import Result, ResultVerdict, Summary, name_of_test
from nicbench.stats.runs import over_runs


def merged(found: Matched, title: str) -> Summary:
    """Points that one entry alone has are left out: what is beside nothing is listed instead (``Matched.lonely``)."""
    entries = tuple(
        replace(entry, results=tuple(one for one in entry.results if len(found.has[point_of(one)]) > 1))
        for entry in found.entries
    )
    results = with_names(entries)
    names = tuple(entry.name for entry in entries)
    verdicts = [entry.verdict for entry in entries]
    return Summary(
        title=title,
        verdict=max(verdicts, key=list(ResultVerdict).index),
        results=results,
        configurations=names,
        over_runs=_over(results, names) if any(entry.runs > 1 for entry in entries) else (),
    )


def _over(results: Sequence[Result], names: Iterable[str]) -> tuple[Result, ...]:
    """Medians and ranges where an entry has several runs, the results of its one run where not."""
    found: list[Result] = []
    for name in names:
        own = tuple(result for result in results if result.configuration == name)
        found += told_over_runs(over_runs(own)) or own
    return tuple(found)


def one_basis(summary: Summary) -> Summary:
    """The same with one scope for each test: where entries differ in it (``--force``) the scope names all."""
    scopes: dict[tuple[str, str], dict[str, None]] = {}
    for result in summary.results:
        scopes.setdefault((name_of_test(result, {}), result.method), {})[result.scope] = None

    def plain(results: tuple[Result, ...]) -> tuple[Result, ...]:
        return tuple(
            result.model_copy(update={"scope": words(scopes[name_of_test(result, {}), result.method])})
            for result in results
        )

    def words(found: dict[str, None]) -> str:
        return next(iter(found)) if len(found) == 1 else f"not all on the same basis ({'; '.join(found)})"

    return summary.model_copy(update={"results": plain(summary.results), "over_runs": plain(summary.over_runs)})


def plan_of_all(entries: Sequence[Entry], title: str) -> Plan:
    """What tables ask a plan for: loss ratios of goals on which all agree, and whether a line rate is nominal."""
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
