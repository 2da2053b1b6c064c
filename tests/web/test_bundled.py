"""What others made and the pages bring along: unchanged, with its licence, and in the list of materials."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from pathlib import Path

from nicbench.web.serving import STATIC

VENDOR = STATIC / "vendor"
KNOWN = json.loads((VENDOR / "packages.json").read_text())["packages"]


def test_every_file_of_others_is_the_one_of_the_archive_that_npm_vouches_for() -> None:
    for package in KNOWN:
        folder = VENDOR / package["folder"]
        assert package["integrity"].startswith("sha512-")
        for name, wanted in package["files"].items():
            found = hashlib.sha512((folder / name).read_bytes()).digest()
            assert f"sha512-{base64.b64encode(found).decode()}" == wanted
        assert {path.name for path in folder.iterdir()} == {*package["files"], "README.md"}


def test_no_file_of_others_lies_elsewhere() -> None:
    minified = [path for path in STATIC.rglob("*") if ".min." in path.name]
    assert {path.relative_to(VENDOR).parts[0] for path in minified} == {package["folder"] for package in KNOWN}


def test_the_list_of_materials_has_them_with_their_licences() -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "packaging"))
    from materials import scripts

    (uplot,) = scripts(VENDOR)
    assert uplot.component()["purl"] == f"pkg:npm/uplot@{KNOWN[0]['version']}"
    assert "Permission is hereby granted" in uplot.texts[0]


def test_the_pages_load_nothing_from_elsewhere() -> None:
    own = [path for path in STATIC.rglob("*") if path.is_file() and VENDOR not in path.parents]
    told = [(path.name, line) for path in own for line in path.read_text().splitlines() if "//" in line]
    assert not [each for each in told if "http" in each[1] and "www.w3.org" not in each[1]]


def test_no_script_makes_markup_of_text() -> None:
    dangerous = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc")
    own = [path for path in STATIC.rglob("*.js") if VENDOR not in path.parents]
    assert len(own) > 5
    assert not [(path.name, word) for path in own for word in dangerous if word in path.read_text()]
