"""What an archive says of itself for people and repositories: licence, CITATION.cff (1.2.0) and RO-Crate (1.1)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from nicbench import __version__
from nicbench.core.errors import UsageError
from nicbench.core.frozen import frozen
from nicbench.core.result import Summary
from nicbench.store.files import json_text
from nicbench.store.folder import RunFolder

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
