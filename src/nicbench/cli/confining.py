"""The commands that read what others wrote, which root's become an ordinary user for (``store/confined.py``).

What such a command reaches follows from its words: the files and folders that they name, and the folder of runs. What
it may write is what the user asked for. This is decided before anything of the command is loaded.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from nicbench.store.files import BENCH, IMPORT, JOURNAL, TAGS, make_folder

if TYPE_CHECKING:
    from nicbench.store.confined import Errand, Fence

_RUNS: Final = Path("runs")
_RUN_ID: Final = re.compile(r"\d{4}-\d\d-\d\dT\d{6}Z-[a-z0-9-]+")
_REMOTE: Final = "://"
_FILE: Final = "file://"
_IN_GROUPS: Final = (["fleet", "gather"], ["study", "pack"])


def confine(given: list[str]) -> int | None:
    """Continues as an ordinary user if the command reads what others wrote, and returns None in that process.

    Returns the exit status of that process in this one, and None as well for every other command.
    """
    fence = fence_of(given)
    if fence is None:
        return None
    from nicbench.store.confined import confine_this

    ended = confine_this(fence)
    if ended is None:
        return None
    if ended.error is None:
        return ended.status
    from nicbench.cli.app import report_error

    return report_error(ended.error, given)


def fence_of(given: list[str]) -> Fence | None:
    """Returns what a command line may reach; None where it keeps its rights, or shows nothing but help."""
    command, *words = (given[1:] if given[:2] in _IN_GROUPS else given) or [""]
    writes = _WRITES.get(command)
    if writes is None or {"-h", "--help"} & set(words):
        return None
    from nicbench.store.confined import Fence, Limits  # imported here: commands that keep their rights start without it
    from nicbench.store.index import NAME as INDEX

    asked_for = writes(words)  # first: an import makes the folder of runs, which is then read
    named = _named(words)
    indexes = {folder.resolve() / INDEX for folder in named}
    remote = any(_REMOTE in word and _FILE not in word for word in words)
    return Fence(
        reads=(*named, Path.home() / ".aws") if remote else tuple(named),
        may_write=lambda path: path in indexes or asked_for(path),
        limits=Limits(cpu_s=None) if command in ("gather", "web") else Limits(),
        errands=_errands(named) if command == "web" else {},
        listens=command == "web",
        connects=remote,
        gives_way="--beside" in words,
    )


def _is_report(folder: Path, path: Path) -> bool:
    from nicbench.store import manifest  # imported here, as the index is

    return manifest.is_report(folder, path)


def _named(words: list[str]) -> list[Path]:
    """Returns the files and folders that words name: as they are, after ``NAME=``, before ``:CONFIGURATION``."""
    runs = _runs_folder(words)
    words = [unquote(word.removeprefix(_FILE)) if _FILE in word else word for word in words]
    parts = [part for word in words for part in (word, *word.split("="), word.rpartition(":")[0]) if part]
    parts += [part.rpartition(":")[0] for part in parts if ":" in part]
    named = [path for part in dict.fromkeys(parts) for path in (Path(part), runs / part) if _is_there(path)]
    return [path.absolute() for path in (runs, *named) if _is_there(path)]


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long for a name
        return False


def _option(words: list[str], *names: str) -> str | None:
    """Returns the value of an option on a command line; the last one counts."""
    found = None
    for index, word in enumerate(words):
        name, is_one_word, value = word.partition("=")
        if name in names:
            found = value if is_one_word else next(iter(words[index + 1 :]), None)
    return found


def _runs_folder(words: list[str]) -> Path:
    return Path(_option(words, "--runs") or _RUNS)


# What each command may write.


def _nothing(_: list[str]) -> Callable[[Path], bool]:
    return lambda _: False


def _reports(words: list[str]) -> Callable[[Path], bool]:
    """Reports: in the folder given by ``--out``, otherwise in that of a run that the words name."""
    out = _option(words, "--out")
    if out is not None:
        folder = Path(out).absolute().resolve()
        return lambda path: path in (folder, *folder.parents) or _is_report(folder, path)
    # Whatever the layout: the folder of figures is one in which a figure is that of a report.
    return _in_run(words, lambda folder, path: _is_report(folder, path) or _is_report(folder, path / "figure.svg"))


def _packed(words: list[str]) -> Callable[[Path], bool]:
    """The archive of a study, and reports of its runs that are missing."""
    is_archive, is_report = _exported(words), _in_run(words, _is_report)
    return lambda path: is_archive(path) or is_report(path)


def _tags(words: list[str]) -> Callable[[Path], bool]:
    """The tags of a run that the words name."""
    return _in_run(words, lambda folder, path: path == folder / TAGS)


def _in_run(words: list[str], allows: Callable[[Path, Path], bool]) -> Callable[[Path], bool]:
    """What is allowed in the folder of a run that lies where the words say."""
    named = [path.resolve() for path in _named(words)]

    def is_allowed(path: Path) -> bool:
        folders = filter(_is_run, path.parents)
        return any(allows(folder, path) for folder in folders if any(folder.is_relative_to(each) for each in named))

    return is_allowed


def _is_run(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (BENCH, IMPORT, JOURNAL))


def _exported(words: list[str]) -> Callable[[Path], bool]:
    """The file given by ``--out``, otherwise one that bears the name of a run or a tag, in this folder."""
    if (out := _option(words, "--out")) is not None:
        return _only(out)
    here, names = Path.cwd().resolve(), [*(each.resolve().name for each in _named(words)), *words]
    return lambda path: (
        path.parent == here and (bool(_RUN_ID.match(path.name)) or any(map(path.name.startswith, names)))
    )


def _checked(words: list[str]) -> Callable[[Path], bool]:
    """The file given by ``--junit``."""
    junit = _option(words, "--junit")
    return _nothing(words) if junit is None else _only(junit)


def _only(file: str) -> Callable[[Path], bool]:
    """One file, and the folders above it."""
    whole = Path(file).absolute()
    resolved = whole.parent.resolve() / whole.name
    return lambda path: path == resolved or path in resolved.parents


def _compared(words: list[str]) -> Callable[[Path], bool]:
    """A page of the name given by ``--out``, otherwise ``comparison``, and its figures."""
    out = Path(_option(words, "--out") or ".").absolute()
    folder, stem = (out, "comparison") if out.is_dir() or not out.suffix else (out.parent, out.stem)
    folder = folder.resolve()

    def is_page(path: Path) -> bool:
        own = path.parent == folder and path.stem in (stem, f"{stem}-figures")
        return own or path.parent == folder / f"{stem}-figures" or path in (folder, *folder.parents)

    return is_page


def _imported(words: list[str]) -> Callable[[Path], bool]:
    """A new run in the folder of runs: what is in it is the importing process's own."""
    folder = _runs_folder(words).absolute()
    make_folder(folder)  # here, as what is read must be there when the process gives up its rights
    folder = folder.resolve()
    return lambda path: path == folder or (path.parent == folder and bool(_RUN_ID.fullmatch(path.name)))


def _gathered(words: list[str]) -> Callable[[Path], bool]:
    """A lake: the folder given by ``--into``, otherwise ``lake`` in the folder of runs."""
    into = _option(words, "--into")
    runs = [Path(word) for word in words if not word.startswith("-") and word != into] or [_RUNS]
    if into is not None and _REMOTE in into and not into.startswith(_FILE):
        return lambda _: False
    if not all(map(Path.is_dir, runs)) or (into is None and (len(runs) > 1 or _is_run(runs[0]))):
        return lambda _: False  # it will say what is wrong with that
    lake = (runs[0] / "lake" if into is None else Path(unquote(into.removeprefix(_FILE)))).absolute()
    make_folder(lake)  # here, as in ``_imported``

    def is_allowed(path: Path) -> bool:
        from nicbench.lake.place import is_of_lake  # imported here: the work has begun

        return is_of_lake(lake.resolve(), path)

    return is_allowed


_WRITES: Final = {
    "check": _checked,
    "compare": _compared,
    "diff": _nothing,
    "export": _exported,
    "gather": _gathered,
    "import": _imported,
    "list": _nothing,
    "pack": _packed,
    "report": _reports,
    "tag": _tags,
    "web": _nothing,
}


# What the server of pages has its clerk do: it may signal nobody.


def _errands(named: list[Path]) -> dict[str, Errand]:
    """Returns what concerns the process that conducts a run; of a run in one of these folders, and no other."""
    folders = [path.resolve() for path in named]

    def on_controller(name: str) -> Errand:
        def errand(folder: Path) -> Mapping[str, Any]:
            if folder.parent not in folders:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            from nicbench.web import controller  # imported here: it is rarely asked for

            return {"value": getattr(controller, name)(folder)}

        return errand

    return {name: on_controller(name) for name in ("writer_fields", "stop_now", "stop_after_test")}
