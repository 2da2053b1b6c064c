"""What must hold in all that is written of one run; each check yields the contradictions that it finds, in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from nicbench.core.events import CeilingFound
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict, Spread
from nicbench.core.table import Column
from nicbench.core.trial import Trial
from nicbench.report.section import Row, Section
from nicbench.stats.intervals import Agreement

from . import _sentences, _terminal
from ._reading import Part, Table, numbers_in, plain
from ._truth import factor_of, is_interval_said, is_limit_said, is_said
from ._whole import Whole

Check = Callable[[Whole], Iterator[str]]


def tables_say_what_was_measured(whole: Whole) -> Iterator[str]:
    """Every cell of every table of results is the value of its result, and its mark the verdict."""
    compared = whole.view.comparison
    left_out = any("Each run by itself" in text and "Left out here" in text for text in whole.said("Drift", "Results"))
    left_out |= any("Left out here" in text for part in whole.parts for text in part.texts)
    shown = [*(compared.sections if compared else ()), *(() if left_out and compared else whole.view.own_sections)]
    tables = [(part, table) for part in whole.parts for table in part.tables]
    used = set()
    for section in shown:
        if section.is_bare:
            continue
        for columns, rows in (
            (section.table.columns, section.rows),
            *((f.table.columns, f.rows) for f in section.further),
        ):
            at = _place_of(columns, rows, tables, used)
            if at is None:
                yield f"no table of {section.table.title} ({section.test}): {_heads_of(columns)}"
                continue
            used.add(at)
            yield from _cells_differ(whole, section, columns, rows, tables[at][1])


def _heads_of(columns: Sequence[Column]) -> list[str]:
    return [
        f"{f'{column.group}: ' if column.group else ''}{plain(column.head)}{f' [{column.unit}]' if column.unit else ''}"
        for column in columns
    ]


def _place_of(
    columns: Sequence[Column], rows: Sequence[Row], tables: Sequence[tuple[Part, Table]], used: set[int]
) -> int | None:
    def bare(heads: Sequence[str]) -> list[str]:
        return [re.sub(r"[\s-]+", "", head) for head in heads]

    names = [plain(row.cells[0]) for row in rows]
    for at, (_, table) in enumerate(tables):
        same = bare(table.heads) == bare(_heads_of(columns)) and [row[0].rstrip("*") for row in table.rows] == names
        if at not in used and same:
            return at
    return None


def _cells_differ(
    whole: Whole, section: Section, columns: Sequence[Column], rows: Sequence[Row], table: Table
) -> Iterator[str]:
    for cells, row in zip(table.rows, rows, strict=True):
        result = whole.results.get((row.result.id, row.result.run), row.result)
        where = f"{section.table.title}, {result.id}"
        if cells[0].endswith("*") is not (result.verdict is not ResultVerdict.VALID):
            yield f"{where}: the mark of {cells[0]!r} is not that of {result.verdict.value}"
        for column, cell in zip(columns, cells, strict=True):
            known = (result.values, row.result.values, result.parameters, row.result.parameters)
            value = next((found[column.value] for found in known if column.value in found), None)
            if isinstance(value, list | tuple | dict):
                continue
            factor, said = factor_of(column.value, column.unit), cell.rstrip("*")
            if column.aspect == "interval":
                agrees = is_interval_said(said, value, factor)
            elif column.aspect == "limit":
                agrees = is_limit_said(said, value)
            else:
                agrees = is_said(said, value, factor)
            if not agrees:
                yield f"{where}: {column.value} is printed {cell!r} [{column.unit}], and is {value!r}"


def both_reports_have_the_same_tables(whole: Whole) -> Iterator[str]:
    """What Markdown has of them stands in the page too."""
    pages = {tuple(re.sub(r"[\s|*]+", "", cell) for row in rows for cell in row) for rows in whole.page.tables}
    bodies = {cell for cells in pages for cell in cells}
    for part in whole.parts:
        for table in part.tables:
            if table.heads[0] == "Subject":  # in a page it is a list
                continue
            for row in table.rows:
                for cell in row:
                    if re.sub(r"[\s|*]+", "", cell) not in bodies:
                        yield f"{part.title}: {cell!r} is in Markdown alone"


def every_latency_has_its_loss_and_verdict(whole: Whole) -> Iterator[str]:
    """A table of percentiles of frames has the loss of the same trials beside them; it is that of the trials."""
    for part in whole.parts:
        for table in part.tables:
            heads = " ".join(table.heads).lower()
            is_of_frames = re.search(r"\bp50\b|\bp99\b|median latency", heads) and "frame" in table.heads[0].lower()
            # Those with a dedicated core are parts of the frames above, whose loss stands there.
            if is_of_frames and not re.search(r"lost|loss|failed|[Dd]edicated core", heads):
                yield f"{part.title}: latencies without their loss: {table.heads}"
    for one in whole.summary.results:
        trials = [whole.samples[name] for name in one.trials if name in whole.samples]
        if one.method == "latency" and len(trials) == 1 and isinstance(trials[0], Trial):
            ratio = trials[0].reading.counts.loss_ratio
            if one.values.get("loss_ratio") != ratio:
                yield f"{one.id}: loss {one.values.get('loss_ratio')} of a trial that lost {ratio}"
            disturbed = not trials[0].verdict.valid
            if disturbed and one.verdict is ResultVerdict.VALID:
                yield f"{one.id}: {one.verdict.value} of an invalid trial"


def nothing_unknown_limits(whole: Whole) -> Iterator[str]:
    """No disturbed rate is limited by the DUT."""
    doubtful = {one.id: one for one in whole.summary.results if one.verdict is ResultVerdict.DISTURBED}
    for one in (*whole.summary.results, *whole.summary.over_runs):
        for name, value in one.values.items():
            by_dut = isinstance(value, Bounded | Spread) and value.limited_by is LimitedBy.DUT
            if by_dut and one.id in doubtful and _is_behind_disturbed(whole, one, name):
                yield f"{one.id}: {name} is disturbed, and limited by the DUT"
    answer = " ".join(whole.said("Answer"))
    if "Limited by the device under test" in answer and "trials were disturbed" in answer:
        yield f"the answer is limited by the DUT, and its trials were disturbed: {answer}"


def nothing_is_claimed_from_disturbed(whole: Whole) -> Iterator[str]:
    """A configuration whose results are all disturbed is neither better nor worse than another, wherever it is said."""
    for name in whole.summary.configurations:
        verdicts = {one.verdict for one in whole.summary.counted if one.configuration == name}
        if verdicts == {ResultVerdict.DISTURBED}:
            quoted = f"“{re.escape(name)}”"
            # Two tools that measure one configuration are compared with each other, not with another configuration.
            verb = r"(has|passes|is(?! measured by))"
            claim = rf"times (as much as|\w+ than|the [^.]*? of) {quoted}|{quoted} {verb} [^.]*?times "
            yield from (f"claimed from disturbed results: {found[0]}" for found in re.finditer(claim, whole.text))


def _is_behind_disturbed(whole: Whole, one: Result, name: str) -> bool:
    """Whether what disturbed the result is about this rate: each goal says so by itself."""
    goal = name.partition("_")[0]
    return any(text.lower().startswith(f"{goal}:") and "disturbed" in text for text in one.disturbances)


def verdicts_agree(whole: Whole) -> Iterator[str]:
    """The run's verdict is the worst of its results, and every output has it."""
    summary = whole.summary
    verdict = summary.verdict.value
    order = [ResultVerdict.VALID, ResultVerdict.DISTURBED, ResultVerdict.INCOMPLETE]
    worst = max((one.verdict for one in summary.counted), key=order.index)
    if worst is not summary.verdict:
        yield f"the run is {verdict}, its worst result {worst.value}"
    if not any(line.endswith(f": {verdict}") for line in whole.terminal[:3]):
        yield f"the terminal does not begin with {verdict}"
    if not any(text.startswith(verdict) for text in whole.said("Answer")):
        yield f"the answer does not say {verdict}"
    if whole.json["run"]["verdict"] != verdict:
        yield "the JSON has another verdict"
    cases = {case.get("name"): case for case in whole.junit.iter("testcase") if case.get("classname") != "thresholds"}
    for one in summary.counted:
        case = cases.get(one.id)
        if case is None:
            yield f"JUnit lacks {one.id}"
        elif (case.find("skipped") is None and case.find("failure") is None) is not (
            one.verdict is ResultVerdict.VALID
            and "no" not in (one.values.get("met"), one.values.get("accepted"))
            and one.values.get("agreement") != Agreement.DISAGREE.value
        ):
            yield f"JUnit and {one.id} ({one.verdict.value}) differ: {[each.tag for each in case]}"
    rows = {(row["result"], row["run"]): row["verdict"] for row in whole.long_rows}
    for one in summary.results:
        if rows.get((one.id, "" if one.run is None else str(one.run)), one.verdict.value) != one.verdict.value:
            yield f"CSV has another verdict of {one.id}"
    paragraph = " ".join(whole.said("Answer"))
    for count, total in re.findall(r"(\d+) of (\d+) (?:results )?(?:rest|use|are disturbed)", paragraph):
        said = {
            sum(one.verdict is ResultVerdict.DISTURBED and not one.contradicted_by for one in summary.counted),
            sum(one.verdict is ResultVerdict.DISTURBED for one in summary.counted),
            sum(one.verdict is not ResultVerdict.VALID for one in summary.counted),
        }
        if int(total) != len(summary.counted) or int(count) not in said:
            yield f"{count} of {total} said, {said} of {len(summary.counted)} are: {paragraph}"


def exports_are_the_summary(whole: Whole) -> Iterator[str]:
    """JSON and CSV have each number to the last digit."""
    for exported in whole.json["results"]:
        one = whole.results[exported["result"], exported["run"]]
        for value in exported["values"]:
            known = one.values[value["name"]]
            number = known.median if isinstance(known, Spread) else known.value if isinstance(known, Bounded) else known
            if not isinstance(number, str) and value["value"] != number:
                yield f"{one.id}: {value['name']} is {number!r}, JSON has {value['value']!r}"
    for row in whole.long_rows:
        known = whole.results[row["result"], int(row["run"]) if row["run"] else None].values[row["name"]]
        number = known.median if isinstance(known, Spread) else known.value if isinstance(known, Bounded) else known
        if not isinstance(number, str) and (float(row["value"]) if row["value"] else None) != number:
            yield f"{row['result']}: {row['name']} is {number!r}, CSV has {row['value']!r}"


def counts_add_up(whole: Whole) -> Iterator[str]:
    """As many trials are listed as are said, and results rest on trials that there are."""
    trials = [one for one in whole.samples.values() if isinstance(one, Trial)]
    invalid = sum(not one.verdict.valid for one in trials)
    listed = [row for part in whole.parts if part.title == "Trials" for table in part.tables for row in table.rows]
    left_out = any("Left out here" in text for part in whole.parts for text in part.texts)
    disturbed = sum(bool(one.verdict.findings) for one in trials)
    if trials and not left_out and len(listed) != disturbed:
        yield f"{len(listed)} trials are listed, {disturbed} were disturbed or adjusted for"
    for text in whole.said("Trials"):
        said = re.match(r"(\d+) trials?, (\d+) of them", text)
        if said and [int(said[1]), int(said[2])] != [len(trials), disturbed]:
            yield f"{said[0]!r} is said, {len(trials)} were made, {disturbed} disturbed or adjusted for"
    for text in whole.said("Reliability"):
        found = re.search(
            r"(\d+) trials measured the DUT(?: and (\d+) calibrated)?.*?\. (\d+) of the measuring(?: and (\d+))?", text
        )
        if found:
            said = [int(number or 0) for number in found.groups()]
            if said[0] + said[1] != len(trials) or said[2] + said[3] != invalid:
                yield f"{said} trials are said, {len(trials)} were made, {invalid} of them invalid"
    for part in whole.parts:
        for table, above in zip(part.tables, _summaries(part), strict=False):
            found = re.search(r": (\d+)(?: of \d+)? (?:trials|rounds)$|: (\d+)$", above)
            if found and int(found[1] or found[2]) != len(table.rows):
                yield f"{part.title}: {above!r}, and {len(table.rows)} rows"
    for one in whole.summary.results:
        missing = [name for name in one.trials if name not in whole.samples]
        if missing:
            yield f"{one.id} rests on {missing}, which are not there"
        searched = one.values.get("search_trials")
        if isinstance(searched, int) and searched != len(one.trials):
            yield f"{one.id}: {searched} trials of the search, {len(one.trials)} behind it"
        traffic_s = one.values.get("search_traffic_s")
        taken_s = sum(whole.samples[name].measured_s for name in one.trials if name in whole.samples)
        if isinstance(traffic_s, float) and abs(traffic_s - taken_s) > 1e-6 * max(1.0, taken_s):
            yield f"{one.id}: {traffic_s} s of traffic, its trials have {taken_s}"


def _summaries(part: Part) -> list[str]:
    """Before each table of a part, its caption."""
    found, last = [], ""
    for one in part.content:
        if isinstance(one, Table):
            found.append(last)
            last = ""
        else:
            last = one
    return found


def one_ceiling_for_one_size(whole: Whole) -> Iterator[str]:
    """The tester's ceiling is one number for a size, wherever it stands."""
    every = [event for event in whole.folder.journal.events() if isinstance(event, CeilingFound)]
    latest = {(found.configuration, found.run, found.frame_bytes): found for found in whole.view.ceilings}
    for one in whole.summary.results:
        ceiling = one.values.get("ceiling_frames_per_s")
        found = latest.get((one.configuration, one.run or 1, one.parameters.get("frame_bytes")))
        if isinstance(ceiling, int | float) and found is not None:
            place = (one.configuration, one.run or 1, found.frame_bytes, found.mix)
            known = [
                each.ceiling_frames_per_s
                for each in every
                if (each.configuration, each.run, each.frame_bytes, each.mix) == place
            ]
            # Of a tester that always falls short by a share, the most that it sends is that share of the line rate.
            # It is known as well as frames can be counted.
            known += [each * share * (1 + 1e-4) for each in known for share in _sent_shares(whole, one)]
            # A load that was lowered below a ceiling has a room of one percent to it; frames are counted to one.
            if not _is_of_all(one) and not any(
                each * 0.99 * (1 - 1e-9) <= ceiling <= each * (1 + 1e-5) for each in known
            ):
                yield f"{one.id}: a ceiling of {ceiling}, and found were {known}"
            is_alone = one.method in ("throughput", "single-core") and len(known) == 1 and not _is_of_all(one)
            if is_alone and abs(found.ceiling_frames_per_s - ceiling) > 1e-9 * ceiling:
                yield f"{one.id}: a ceiling of {ceiling}, the tester's own limits have {found.ceiling_frames_per_s}"
    for part in whole.parts:
        if part.title != "The tester’s own limits":
            continue
        for table in part.tables:
            rows = sorted(latest.values(), key=lambda found: found.ceiling_frames_per_s)
            printed = sorted(numbers[0].value for cell in table.column("Ceiling") if (numbers := numbers_in(cell)))
            if len(printed) != len(rows):
                yield f"{len(printed)} ceilings in the table of limits, {len(rows)} were found"
            for number, found in zip(printed, rows, strict=False):
                if found.ceiling_frames_per_s and number == 0.0:
                    yield f"a ceiling of {found.ceiling_frames_per_s} is printed as 0"


def _sent_shares(whole: Whole, one: Result) -> set[float]:
    trials = whole.folder.journal.trials().values()
    return {trial.request.sent_share for trial in trials if trial.id in one.trials} - {1.0}


def _is_of_all(one: Result) -> bool:
    return one.scope.startswith("sum")


CHECKS = (
    tables_say_what_was_measured,
    both_reports_have_the_same_tables,
    every_latency_has_its_loss_and_verdict,
    nothing_unknown_limits,
    nothing_is_claimed_from_disturbed,
    verdicts_agree,
    exports_are_the_summary,
    counts_add_up,
    one_ceiling_for_one_size,
    _terminal.the_terminal_has_the_numbers_of_the_results,
    _sentences.every_latency_in_words_has_its_loss,
    _sentences.the_text_is_fit_to_read,
    _sentences.every_claim_has_its_interval,
    _sentences.findings_say_what_they_rest_on,
    _sentences.sentences_have_the_numbers_of_the_tables,
)


def contradictions(whole: Whole) -> list[str]:
    """All that is wrong with what is written of this run, each with the name of the check."""
    return [f"{check.__name__}: {said}" for check in CHECKS for said in check(whole)]
