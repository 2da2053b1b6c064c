"""The archive of a study: run folders as they are, with licence, CITATION.cff (1.2.0) and RO-Crate (1.1), as a ZIP.

``study.json`` holds the SHA-256 of every other file. A stranger's archive is read with care: only files that it names
are unpacked, into a new folder, and each must have its checksum. A checksum detects damage; it is not a signature.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from pydantic import Field, ValidationError

from nicbench import __version__
from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, UsageError
from nicbench.core.frozen import frozen
from nicbench.core.redaction import visible_name
from nicbench.core.result import Summary
from nicbench.store import files, manifest
from nicbench.store.files import damaged_error, hands, json_text, parse_json_of, storage_error, writing_atomically
from nicbench.store.folder import RunFolder, first_problem

_SPDX: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{1,60}")
_DOI: Final = re.compile(r"10\.\d{4,9}/\S{1,200}")
_CONTEXT: Final = "https://w3id.org/ro/crate/1.1/context"
_PROFILE: Final = "https://w3id.org/ro/crate/1.1"
_TYPES: Final = {
    ".json": "application/json",
    ".ndjson": "application/x-ndjson",
    ".yaml": "application/yaml",
    ".html": "text/html",
    ".pdf": "application/pdf",
    ".md": "text/markdown",
    ".svg": "image/svg+xml",
    ".parquet": "application/vnd.apache.parquet",
}


class PackedFile(NamedTuple):
    """A file of an archive: its path in it, checksum and size."""

    name: str
    sha256: str
    size_bytes: int


@frozen
class Citation:
    """How a study is cited. An author is written ``Family, Given``, or as the name of an organisation."""

    title: str
    authors: tuple[str, ...]
    licence: str
    """The identifier of SPDX, such as CC-BY-4.0."""
    description: str | None = None
    doi: str | None = None

    def __post_init__(self) -> None:
        if not self.authors:
            raise UsageError("nobody is named as the author", place="--author", next_step="--author 'Family, Given'")
        if not _SPDX.fullmatch(self.licence):
            step = "an identifier of https://spdx.org/licenses, such as --licence CC-BY-4.0"
            wrong = f"{self.licence} is not a licence" if self.licence else "without a licence nobody may use the study"
            raise UsageError(wrong, place="--licence", next_step=step)
        if self.doi is not None and not _DOI.fullmatch(self.doi):
            raise UsageError(f"{self.doi} is not a DOI", place="--doi", next_step="write it like 10.5281/zenodo.1234")

    @property
    def licence_address(self) -> str:
        """Where the text of the licence is."""
        return f"https://spdx.org/licenses/{self.licence}"


def write_licence(citation: Citation) -> str:
    """Writes the file LICENSE."""
    return f"SPDX-License-Identifier: {citation.licence}\n\nThe text of the licence: {citation.licence_address}\n"


def write_readme(citation: Citation, archive: str) -> str:
    """Writes what a reader of the archive needs first."""
    return f"""# {citation.title}

{citation.description or "A study of network performance."}

`runs` holds the run folders: bench file, plan, inventory, every trial, results and report. To repeat the study and
compare it claim by claim, with nicbench {__version__} or newer:

    nicbench study rerun {archive}
"""


def write_citation(citation: Citation, today: date) -> str:
    """Writes CITATION.cff, whose values are JSON texts, which YAML reads."""
    lines = [
        "cff-version: 1.2.0",
        'message: "If you use this study, please cite it."',
        "type: dataset",
        f"title: {_text(citation.title)}",
        "authors:",
        *(line for author in citation.authors for line in _author_lines(author)),
        f"date-released: {_text(today.isoformat())}",
        f"license: {citation.licence}",
    ]
    lines += [f"doi: {_text(citation.doi)}"] if citation.doi else []
    lines += [f"abstract: {_text(citation.description)}"] if citation.description else []
    return "\n".join([*lines, ""])


def _author_lines(author: str) -> Iterator[str]:
    family, comma, given = author.partition(",")
    if comma:
        yield f"  - family-names: {_text(family.strip())}"
        yield f"    given-names: {_text(given.strip())}"
    else:
        yield f"  - name: {_text(author)}"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def write_crate(
    citation: Citation, today: date, runs: Sequence[tuple[RunFolder, Summary | None]], packed: Sequence[PackedFile]
) -> str:
    """Writes ro-crate-metadata.json: the study, its files, and each run as an action that made them."""
    program = {"@id": "#nicbench", "@type": "SoftwareApplication", "name": "nicbench", "version": __version__}
    authors = [_author(number, name) for number, name in enumerate(citation.authors, 1)]
    root: dict[str, Any] = {
        "@id": "./",
        "@type": "Dataset",
        "name": citation.title,
        "description": citation.description or citation.title,
        "datePublished": today.isoformat(),
        "license": {"@id": citation.licence_address},
        "author": [{"@id": author["@id"]} for author in authors],
        "hasPart": [{"@id": each.name} for each in packed],
        "mentions": [{"@id": f"#{folder.run_id}"} for folder, _ in runs],
    }
    if citation.doi:
        root["identifier"] = f"https://doi.org/{citation.doi}"
    about = {
        "@id": "ro-crate-metadata.json",
        "@type": "CreativeWork",
        "conformsTo": {"@id": _PROFILE},
        "about": {"@id": "./"},
    }
    licence = {"@id": citation.licence_address, "@type": "CreativeWork", "name": citation.licence}
    graph = [about, root, licence, *authors, program, *_actions(runs, packed), *map(_file, packed)]
    return f"{json_text({'@context': _CONTEXT, '@graph': graph}, indent=2)}\n"


def _author(number: int, name: str) -> dict[str, Any]:
    family, comma, given = name.partition(",")
    if comma:
        person = {"familyName": family.strip(), "givenName": given.strip()}
        return {"@id": f"#author-{number}", "@type": "Person", "name": f"{given} {family}".strip(), **person}
    return {"@id": f"#author-{number}", "@type": "Organization", "name": name}


def _actions(
    runs: Sequence[tuple[RunFolder, Summary | None]], packed: Sequence[PackedFile]
) -> Iterator[dict[str, Any]]:
    for folder, summary in runs:
        inside = f"runs/{folder.run_id}/"
        names = [each.name for each in packed if each.name.startswith(inside)]
        given = [name for name in names if name.endswith((f"{inside}bench.yaml", f"{inside}import.json"))]
        yield {
            "@id": f"#{folder.run_id}",
            "@type": "CreateAction",
            "name": summary.title if summary else folder.run_id,
            **({"description": summary.headline} if summary and summary.headline else {}),
            "instrument": {"@id": "#nicbench"},
            "object": [{"@id": name} for name in given],
            "result": [{"@id": name} for name in names if name not in given],
        }


def _file(one: PackedFile) -> dict[str, Any]:
    suffix = PurePosixPath(one.name).suffix
    kind = {"encodingFormat": _TYPES[suffix]} if suffix in _TYPES else {}
    return {
        "@id": one.name,
        "@type": "File",
        "name": PurePosixPath(one.name).name,
        "contentSize": str(one.size_bytes),
        "sha256": one.sha256,
        **kind,
    }


NAME: Final = "study.json"
FORMAT: Final = "1.0"
RUNS: Final = "runs"
_MOST_FILES: Final = 100_000
_MOST_BYTES: Final = 64 * 2**30
_BLOCK_BYTES: Final = 2**20
_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the archive, the earliest that ZIP knows: equal content gives equal bytes."""
_PART: Final = re.compile(r"[^\x00-\x1f\x7f/\\:]{1,255}")
_STEP: Final = "ask whoever published it for the archive that `nicbench study pack` made"


class Contents(Frozen):
    """``study.json``: the runs of a study, and the SHA-256 of each file by its path in the archive."""

    format: str = FORMAT
    nicbench_version: str = __version__
    title: str
    runs: tuple[str, ...] = Field(min_length=1, max_length=1000)
    """Names of the run folders under ``runs``."""
    sha256: dict[str, str] = Field(max_length=_MOST_FILES)


def pack(folders: Sequence[RunFolder], citation: Citation, today: date, path: Path) -> Contents:
    """Writes the archive of finished runs. HostError where a file of a run is not as the run left it."""
    packed: list[PackedFile] = []
    with writing_atomically(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        for folder in folders:
            known = manifest.read(folder.path)
            for name in _names_of(folder):
                found = _add_file(archive, f"{RUNS}/{folder.run_id}/{name}", folder.path / name)
                if known is not None and known.sha256.get(name, found.sha256) != found.sha256:
                    raise damaged_error(ValueError("it was changed after the run had finished"), folder.path / name)
                packed.append(found)
        texts = {
            "LICENSE": write_licence(citation),
            "CITATION.cff": write_citation(citation, today),
            "README.md": write_readme(citation, path.name),
        }
        packed += [_add_bytes(archive, name, text.encode()) for name, text in texts.items()]
        crate = write_crate(citation, today, [(folder, folder.summary()) for folder in folders], packed)
        packed.append(_add_bytes(archive, "ro-crate-metadata.json", crate.encode()))
        contents = Contents(
            title=citation.title,
            runs=tuple(folder.run_id for folder in folders),
            sha256={each.name: each.sha256 for each in packed},
        )
        _add_bytes(archive, NAME, f"{json_text(contents)}\n".encode())
    return contents


def _names_of(folder: RunFolder) -> list[str]:
    """Lists the files of a finished run and its reports; what the machine and its user keep for themselves is left."""
    known = manifest.read(folder.path)
    reports = (path for path in folder.path.glob("report*") if path.is_file() or path.is_dir())
    every = (each for path in reports for each in (path, *path.glob("*.svg")) if each.is_file())
    return sorted(
        [
            *(known.sha256 if known else ()),
            manifest.NAME,
            *(str(each.relative_to(folder.path)) for each in every if manifest.is_report(folder.path, each)),
        ]
    )


def _add_file(archive: zipfile.ZipFile, name: str, path: Path) -> PackedFile:
    digest, size = hashlib.sha256(), 0
    try:
        with files.open_file(path) as source, archive.open(_entry(name), "w", force_zip64=True) as target:
            while block := source.read(_BLOCK_BYTES):
                digest.update(block)
                size += len(block)
                target.write(block)
    except OSError as error:
        raise storage_error(error, path) from error
    return PackedFile(name, digest.hexdigest(), size)


def _add_bytes(archive: zipfile.ZipFile, name: str, content: bytes) -> PackedFile:
    archive.writestr(_entry(name), content)
    return PackedFile(name, hashlib.sha256(content).hexdigest(), len(content))


def _entry(name: str) -> zipfile.ZipInfo:
    found = zipfile.ZipInfo(name, _TIME)
    found.compress_type = zipfile.ZIP_DEFLATED
    found.external_attr = 0o644 << 16
    return found


def unpack(path: Path, folder: Path) -> Contents:
    """Unpacks an archive into a new folder. UsageError where it is not that of a study, HostError where it is damaged.

    Nothing is left of an archive that is refused.
    """
    try:
        with files.open_file(path) as stream, zipfile.ZipFile(stream) as archive:
            members = _members_of(archive, path)
            contents = _read_contents(archive, members, path)
            hands().make_folder(folder, exist_ok=False)
            try:
                _unpack_files(archive, members, contents, folder, path)
            except BaseException:
                hands().remove_folder(folder)
                raise
    except FileExistsError as error:
        step = f"name it in place of the archive, `nicbench study rerun {folder}`, or another by --out"
        raise UsageError("is there already", place=str(folder), next_step=step) from error
    except FileNotFoundError as error:
        raise UsageError("there is no such file", place=str(path), next_step="name the archive of a study") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise UsageError(f"is not a whole ZIP file: {error}", place=str(path), next_step=_STEP) from error
    except OSError as error:
        raise storage_error(error, path) from error
    return contents


def _members_of(archive: zipfile.ZipFile, path: Path) -> Mapping[str, zipfile.ZipInfo]:
    members = archive.infolist()
    if len(members) > _MOST_FILES or sum(each.file_size for each in members) > _MOST_BYTES:
        message = f"holds more than {_MOST_FILES} files or {_MOST_BYTES // 2**30} GiB"
        raise UsageError(message, place=str(path), next_step=_STEP)
    found = {each.filename: each for each in members}
    if len(found) < len(members):
        raise UsageError("holds two files of one name", place=str(path), next_step=_STEP)
    return found


def _read_contents(archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], path: Path) -> Contents:
    if NAME not in members or members[NAME].file_size > files.MOST_BYTES:
        raise UsageError(f"is not the archive of a study: it holds no {NAME}", place=str(path), next_step=_STEP)
    return _parse_contents(archive.read(NAME), path)


def _parse_contents(text: bytes, path: Path) -> Contents:
    place = path / NAME
    content = parse_json_of(text, place)
    written = content.get("format") if isinstance(content, dict) else None
    if isinstance(written, str) and written.partition(".")[0] != FORMAT.partition(".")[0]:
        raise UsageError(
            f"has the format {visible_name(written)}, which a newer nicbench wrote; this one knows {FORMAT}",
            place=str(place),
            next_step="rerun it with that nicbench, or a newer one",
        )
    try:
        contents = Contents.model_validate(content)
    except ValidationError as error:
        raise damaged_error(ValueError(first_problem(error)), place) from error
    for name in (*contents.sha256, *(f"{RUNS}/{run}" for run in contents.runs)):
        if not _stays_inside(name):
            raise UsageError(
                f"names a file outside of its folder: {visible_name(name)}", place=str(place), next_step=_STEP
            )
    return contents


def _stays_inside(name: str) -> bool:
    """Whether a path is relative, and has no step that leads upwards and no character that a file system minds."""
    parts = name.split("/")
    return all(_PART.fullmatch(part) and part not in (".", "..") for part in parts) and name != NAME


def _unpack_files(
    archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], contents: Contents, folder: Path, path: Path
) -> None:
    for parent in sorted({str(PurePosixPath(name).parent) for name in contents.sha256}):
        hands().make_folder(folder / parent)
    for name, checksum in contents.sha256.items():
        if name not in members:
            raise _damaged(name, "is missing", path)
        digest = hashlib.sha256()
        try:
            with archive.open(members[name]) as source, writing_atomically(folder / name) as target:
                while block := source.read(_BLOCK_BYTES):
                    digest.update(block)
                    target.write(block)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise _damaged(name, "cannot be unpacked", path) from error
        if digest.hexdigest() != checksum:
            raise _damaged(name, "does not have its checksum", path)
    files.write_atomically(folder / NAME, archive.read(NAME))


def _damaged(name: str, what: str, path: Path) -> HostError:
    return HostError(f"is damaged: {visible_name(name)} {what}", place=str(path), next_step=_STEP)


def open_study(folder: Path) -> Contents:
    """Opens the folder of an unpacked study. HostError where a file is not as it was published."""
    try:
        contents = _parse_contents(files.read_bytes(folder / NAME), folder)
    except FileNotFoundError as error:
        message = f"is not the folder of a study: it holds no {NAME}"
        raise UsageError(message, place=str(folder), next_step=_STEP) from error
    found = tuple(_find_changed(folder, contents))
    if found:
        more = f", and {len(found) - 3} more" if len(found) > 3 else ""
        raise HostError(
            f"is not as it was published: {'; '.join(found[:3])}{more}",
            place=str(folder),
            next_step="unpack the archive again; change a bench file in a copy of it",
        )
    return contents


def _find_changed(folder: Path, contents: Contents) -> Iterator[str]:
    for name, checksum in contents.sha256.items():
        try:
            if manifest.sha256_of(folder / name) != checksum:
                yield f"{visible_name(name)} was changed"
        except FileNotFoundError:
            yield f"{visible_name(name)} is missing"
