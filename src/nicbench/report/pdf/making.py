"""Makes a PDF by typst from our template and fonts alone: typst reads no file of the machine and no network."""

from __future__ import annotations

import importlib.util
import tempfile
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Final, Literal

from nicbench.core.errors import NicbenchError, NotReadyError
from nicbench.report.document.blocks import Document
from nicbench.report.pdf.data import data_of
from nicbench.store.files import json_text

_TEMPLATE = "report.typ"
_FACES = ("Regular", "Semibold", "Bold", "It")
_OF_STANDARD = "PDF/UA"
"""The beginning of typst's error messages where a document could be written, but would violate the standard."""
_Standard = Literal["ua-1"]
ACCESSIBLE: Final[_Standard] = "ua-1"
"""The standard PDF/UA-1 (ISO 14289-1): typst refuses to write a file that violates it."""


def make_pdf(document: Document, about: str, created: datetime) -> bytes:
    """Returns the PDF file, tagged, and identical byte for byte for the same document and ``created``.

    ``about`` is printed at the head of each page: "run ID". Characters that our fonts lack are taken from the machine's
    fonts; where these lack them too, the file is tagged all the same but does not declare PDF/UA-1. NotReadyError where
    typst or the fonts are not installed.
    """
    needed = [name for name in ("typst", "font_source_sans_pro") if importlib.util.find_spec(name) is None]
    if needed:
        packages = " ".join(name.replace("_", "-") for name in needed)
        raise NotReadyError(
            f"a PDF needs the Python package {packages}, which is not installed",
            place="--format pdf",
            next_step=f"run scripts/setup, or `pip install {packages}` into the environment of nicbench",
        )
    content = json_text(data_of(document, about), indent=None)
    with tempfile.TemporaryDirectory(prefix="nicbench-") as folder:
        _copy_faces(Path(folder))
        for with_machines, standards in ((False, [ACCESSIBLE]), (True, [ACCESSIBLE]), (True, [])):
            found = _compile(content, Path(folder), with_machines, standards, created)
            if found is not None:
                return found
    raise NicbenchError("typst finds no glyphs, whatever it is given", place=_TEMPLATE, next_step="report this")


def _compile(
    content: str, faces: Path, with_machines: bool, standards: list[_Standard], created: datetime
) -> bytes | None:
    """Returns the PDF; None where the content violates the standard, mostly because these fonts lack a character."""
    import typst  # here: loads 30 MB, needed for a PDF alone

    template = (files("nicbench.report.pdf") / _TEMPLATE).read_bytes()
    fonts = typst.Fonts(include_system_fonts=with_machines, font_paths=[faces])
    try:
        found: bytes = typst.compile(
            template,
            font_paths=fonts,
            format="pdf",
            sys_inputs={"report": content},
            pdf_standards=[*standards],
            timestamp=int(created.timestamp()),
        )
        return found
    except typst.TypstError as error:
        if standards and error.message.startswith(_OF_STANDARD):
            return None
        raise NicbenchError(
            f"typst could not lay out the report: {error.message}", place=_TEMPLATE, next_step="report this as a defect"
        ) from error


def _copy_faces(folder: Path) -> None:
    """Copies the TTF faces alone: of the formats in the package, typst takes the one that the disk lists first."""
    faces = files("font_source_sans_pro") / "files"
    for face in _FACES:
        name = f"SourceSansPro-{face}.ttf"
        (folder / name).write_bytes((faces / name).read_bytes())
