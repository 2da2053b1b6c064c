"""``nicbench study pack|rerun``: makes one file of a study, and repeats a study that others made a file of."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from nicbench.cli import completion
from nicbench.cli.failure import ReportedError
from nicbench.cli.options import DEFAULT_RUNS, Json, NoProgress, NoReport, RunsFolder, Wait
from nicbench.cli.output import FORMAT, print_json, print_line, say
from nicbench.core.errors import CannotTellError, ThresholdError, UsageError
from nicbench.core.units import count_of
from nicbench.store.listing import open_run

if TYPE_CHECKING:
    from nicbench.store.folder import RunFolder
    from nicbench.study.archive import Citation
    from nicbench.study.claims import Repeated

# ``nicbench study pack RUN...``: one archive of runs, with what citing and repeating them needs.


def _text(name: str, metavar: str, words: str, default: str | None = None) -> Any:
    return typer.Option(name, metavar=metavar, help=words, show_default=default or False)


_OF_BENCH_FILE: Final = "as the bench file says"
_Packed = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN...",
        help="Finished runs: folders, ids under --runs, or `latest`.",
        show_default=False,
        autocompletion=completion.runs,
    ),
]
_Archive = Annotated[Path | None, _text("--out", "FILE", "The archive.", "the first run's id, .zip")]
_Title = Annotated[str | None, _text("--title", "TEXT", "The title of the study.", _OF_BENCH_FILE)]
_Authors = Annotated[
    list[str] | None, _text("--author", "NAME", "`Family, Given`, or an organisation (repeatable).", _OF_BENCH_FILE)
]
_Licence = Annotated[
    str | None, _text("--licence", "SPDX", "Under which licence others may use it: CC-BY-4.0.", _OF_BENCH_FILE)
]
_Doi = Annotated[str | None, _text("--doi", "DOI", "The DOI that a repository reserved for it: 10.5281/zenodo.1234.")]


def _pack(
    runs: _Packed,
    out: _Archive = None,
    title: _Title = None,
    author: _Authors = None,
    licence: _Licence = None,
    doi: _Doi = None,
    runs_folder: RunsFolder = DEFAULT_RUNS,
    json: Json = False,
) -> None:
    """Make one archive of runs: data, reports, licence, citation and metadata (CITATION.cff, RO-Crate)."""
    from nicbench.store.folder import refuse_damaged  # imported here, as completion needs none of it
    from nicbench.study.archive import pack

    folders = [open_run(run, runs_folder) for run in dict.fromkeys(runs)]
    for folder in folders:
        refuse_damaged(folder)
        if not folder.finished:
            step = f"nicbench resume {folder.path}"
            raise UsageError("is not finished: a study holds whole runs", place=str(folder.path), next_step=step)
        _make_report(folder)
        _warn_of_names(folder)
    path = out or Path(f"{folders[0].run_id}.zip")
    contents = pack(folders, _cite(folders[0], title, author, licence, doi), datetime.now(UTC).date(), path)
    if json:
        print_json({"format": FORMAT, "archive": str(path), "runs": list(contents.runs), "files": len(contents.sha256)})
    else:
        print_line(str(path))
        counted = f"{count_of(len(contents.runs), 'run')}, {len(contents.sha256)} files"
        say(f"{counted}; `nicbench study rerun {path}` repeats them")


def _cite(
    folder: RunFolder, title: str | None, authors: list[str] | None, licence: str | None, doi: str | None
) -> Citation:
    """Collects how the study is cited, from the command line and else from the plan of its first run."""
    from nicbench.core.plan import DEFAULT_WISHES
    from nicbench.study.archive import Citation

    plan = folder.plan()
    wishes = plan.report if plan else DEFAULT_WISHES
    return Citation(
        title=title or wishes.title or (plan.title if plan else folder.run_id),
        authors=tuple(authors or ([wishes.author] if wishes.author else [])),
        licence=licence or wishes.licence or "",
        description=plan.description if plan else None,
        doi=doi,
    )


def _make_report(folder: RunFolder) -> None:
    if not (folder.path / "report.html").exists():
        from nicbench.report import build  # imported here, as charts take a second to load

        build(folder.path)


def _warn_of_names(folder: RunFolder) -> None:
    """Warns of names and serial numbers, which the archive publishes."""
    from nicbench.cli.commands.run import was_redacted

    plan = folder.plan()
    if not folder.is_imported and not (plan and plan.simulated) and not was_redacted(folder.journal.events()):
        say(f"note: {folder.run_id} names its machines, MAC addresses and serial numbers; `run --redact` does not")


# ``nicbench study rerun ARCHIVE``: repeats the runs of an archive, and says of each claim whether it was found again.

_Study = Annotated[
    Path,
    typer.Argument(metavar="ARCHIVE", help="The archive, or the folder that it was unpacked to.", show_default=False),
]
_Folder = Annotated[Path | None, _text("--out", "DIR", "Where it is unpacked.", "the archive's name without .zip")]
_Against = Annotated[
    list[str] | None,
    typer.Option(
        "--against",
        metavar="RUN",
        help="Measure nothing: compare with this run, one for each of the study, in its order (repeatable).",
        show_default=False,
        autocompletion=completion.runs,
    ),
]


def _rerun(
    archive: _Study,
    out: _Folder = None,
    against: _Against = None,
    runs_folder: RunsFolder = DEFAULT_RUNS,
    no_progress: NoProgress = False,
    no_report: NoReport = False,
    wait: Wait = 0.0,
    json: Json = False,
) -> None:
    """Repeat the runs of an archive here and compare claim by claim; status 6: not repeated, 5: not comparable."""
    from nicbench.study.archive import RUNS, open_study  # imported here, as in _pack
    from nicbench.study.claims import Repetition, compare_claims

    folder = archive if archive.is_dir() else _unpack(archive, out or Path(archive.stem))
    contents = open_study(folder)
    if against and len(against) != len(contents.runs):
        step = f"give --against for each run, in this order: {', '.join(contents.runs)}"
        raise UsageError(f"the study has {len(contents.runs)} runs", place="--against", next_step=step)
    found: list[tuple[RunFolder, RunFolder, Repeated]] = []
    for place, name in enumerate(contents.runs):
        study = open_run(str(folder / RUNS / name), runs_folder)
        if study.is_imported:
            raise UsageError("was imported, not measured by nicbench", place=name, next_step="compare it by hand")
        if against:
            rerun = open_run(against[place], runs_folder)
        else:
            with_progress = not no_progress and not json
            rerun = _measure(
                study, folder, runs_folder, with_progress=with_progress, with_report=not no_report, wait_s=wait
            )
        found.append((study, rerun, compare_claims(study, rerun)))
    counts = {each: sum(one.count(each) for _, _, one in found) for each in Repetition}
    if json:
        print_json(
            {"format": FORMAT, "study": str(folder), "claims": counts, "runs": [_document(*one) for one in found]}
        )
    else:
        for one in found:
            _print(*one)
        print_line(f"\n{', '.join(f'{count} {each}' for each, count in counts.items())}")
    if counts[Repetition.NOT_REPEATED]:
        wrong = ThresholdError(f"{counts[Repetition.NOT_REPEATED]} claims were not repeated", next_step=_LOOK)
        raise ReportedError(wrong, None, told=True)
    if not counts[Repetition.REPEATED]:
        raise ReportedError(CannotTellError("no claim could be compared", next_step=_LOOK), None, told=True)


_LOOK: Final = "read why above; `nicbench compare` lays both runs side by side"


def _unpack(archive: Path, folder: Path) -> Path:
    """Unpacks an archive as an ordinary user; returns its folder."""
    from nicbench.store.confined import Fence, run_confined
    from nicbench.study.archive import unpack

    path, target = archive.absolute(), folder.absolute()
    place = target.parent.resolve() / target.name

    def work() -> None:
        unpack(path, place)

    ended = run_confined(work, Fence((path,), lambda asked: asked == place))
    if ended.error is not None:
        raise ended.error
    say(f"unpacked to {folder}")
    return folder


def _measure(
    study: RunFolder, archive: Path, runs_folder: Path, *, with_progress: bool, with_report: bool, wait_s: float
) -> RunFolder:
    """Runs the bench file of a study's run, and returns the folder of the new run."""
    from nicbench.bench_file import load
    from nicbench.cli.running import conduct_quietly
    from nicbench.store.files import BENCH
    from nicbench.store.folder import RunFolder

    bench = load(study.path / BENCH)
    folder = RunFolder.create(runs_folder, bench.source, bench.title)
    say(f"run folder: {folder.path}")
    try:
        conduct_quietly(bench, folder, with_progress=with_progress, wait_s=wait_s, with_report=with_report)
    except ReportedError:
        say(f"once it is measured: nicbench study rerun {archive} --against {folder.run_id}")
        raise
    return folder


def _document(study: RunFolder, rerun: RunFolder, found: Repeated) -> dict[str, Any]:
    return {
        "study": study.run_id,
        "rerun": rerun.run_id,
        "rule": list(found.rule),
        "claims": [
            {
                "claim": each.about,
                "repetition": each.repetition.value,
                "why": each.why,
                "study": each.study,
                "rerun": each.rerun,
            }
            for each in found.claims
        ],
        "settings": [each.path for each in found.settings.main],
    }


_MOST_SETTINGS: Final = 8


def _print(study: RunFolder, rerun: RunFolder, found: Repeated) -> None:
    print_line(f"{study.run_id}, repeated by {rerun.run_id}")
    paths = [each.path for each in found.settings.main]
    if paths:
        more = f" and {len(paths) - _MOST_SETTINGS} more" if len(paths) > _MOST_SETTINGS else ""
        print_line(f"settings that differ: {', '.join(paths[:_MOST_SETTINGS])}{more}")
    for each in found.claims:
        print_line(f"\n{each.repetition.value}: {each.about}")
        values = [
            f"{who} {said}" for who, said in (("study", each.study), ("rerun", each.rerun)) if said and said != each.why
        ]
        if values:
            print_line(f"  {', '.join(values)}")
        print_line(f"  {each.why}")
    for sentence in found.rule:
        print_line(f"\n{sentence}" if sentence is found.rule[0] else sentence)


app = typer.Typer(no_args_is_help=True)
app.command("pack")(_pack)
app.command("rerun")(_rerun)
COMMANDS: Final = {"study": app}
