"""What is inside a package, in CycloneDX (nicbench.cdx.json), and the licences of all of it (THIRD-PARTY-LICENSES.txt).

``materials.py engine FOLDER DEBS`` for what the wheel brings: the engine's binaries (crates, and Debian's libraries in
them), and scripts of others in pages.
``materials.py tree FOLDER DEBS DISTRIBUTIONS`` for a tree with its own Python: Debian's packages in it, the packages
that were installed into DISTRIBUTIONS, and what the wheel there brought, whose own two files are taken away.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import distributions
from os import environ
from pathlib import Path
from typing import Any, Final

from nicbench import __version__

LINKED: Final = frozenset(
    {"dpdk", "libbpf", "xdp-tools", "elfutils", "zlib", "rdma-core", "libnl3"}
    | {"numactl", "libbsd", "libmd", "openssl", "libpcap", "glibc"}
)
"""Debian's source packages whose archives the engine is linked with (engine/packets/build.rs), and the C library."""
_BINARIES: Final = (
    "nicbench-packets",
    "nicbench-monitor",
    "nicbench-frames",
    "nicbench-agent",
    "nicbench-connections",
)


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that is inside: its package URL, the expression of its licence where it has one, and the texts."""

    kind: str
    name: str
    version: str
    licence: str | None
    texts: tuple[str, ...]

    def component(self) -> dict[str, Any]:
        """As CycloneDX has it."""
        said = [{"license": {"name": self.licence}}] if self.licence else []
        url = f"pkg:{self.kind}/{self.name}@{self.version}"
        row = {"type": "library", "bom-ref": url, "name": self.name, "version": self.version, "purl": url}
        return {**row, "licenses": said} if said else row


def crates() -> Iterator[Part]:
    """Those that the binaries are made of, as the lock has them, without what only tests or builds use."""
    command = (
        "cargo",
        "metadata",
        "--locked",
        "--format-version",
        "1",
        "--filter-platform",
        "x86_64-unknown-linux-gnu",
    )
    told = json.loads(subprocess.run(command, cwd="engine", check=True, capture_output=True).stdout)
    nodes = {node["id"]: node for node in told["resolve"]["nodes"]}
    waiting = [package["id"] for package in told["packages"] if package["name"] in _BINARIES]
    used: set[str] = set()
    while waiting:
        one = waiting.pop()
        if one not in used:
            used.add(one)
            kinds = ((row["pkg"], [kind["kind"] for kind in row["dep_kinds"]]) for row in nodes[one]["deps"])
            waiting += [package for package, kind in kinds if None in kind]
    for package in told["packages"]:
        if package["id"] in used and package["source"]:
            yield Part(
                "cargo",
                package["name"],
                package["version"],
                package["license"],
                _texts(Path(package["manifest_path"]).parent),
            )


def debian(folder: Path, only: Iterable[str] = ()) -> Iterator[Part]:
    """Source packages of the files ``*.deb`` in ``folder``, or ``only`` those of these names."""
    seen = set()
    for path in sorted(folder.glob("*.deb")):
        fields = dict(
            line.split(": ", 1)
            for line in _output("dpkg-deb", "--field", str(path), "Package", "Version", "Source").splitlines()
        )
        name = fields.get("Source", fields["Package"]).split()[0]
        if name in seen or (only and name not in only):
            continue
        listed = _output("dpkg-deb", "--contents", str(path))
        place = f"./usr/share/doc/{fields['Package']}/copyright"
        if any(line.endswith(place) for line in listed.splitlines()):
            seen.add(name)
            archive = subprocess.run(("dpkg-deb", "--fsys-tarfile", path), check=True, capture_output=True).stdout
            text = subprocess.run(("tar", "-xO", place), input=archive, check=True, capture_output=True).stdout
            copyright = text.decode(errors="replace")
            yield Part("deb/debian", name, fields["Version"], _licences_in(copyright), (copyright,))


def _licences_in(text: str) -> str | None:
    """The names of licences in a copyright file of Debian: of its fields, else of the common texts that it names."""
    fields = re.findall(
        r"^License: *([\w.+-]+(?: (?:or|and|with) [\w.+-]+)*)(?: exception)?$", text, re.MULTILINE | re.I
    )
    return ", ".join(dict.fromkeys(fields or re.findall(r"common-licenses/([A-Z]+-[\d.]*\d)", text)))[:200] or None


def scripts(folder: Path = Path("src/nicbench/web/static/vendor")) -> Iterator[Part]:
    """Packages of npm, files of which lie in the pages, as ``packages.json`` there names them."""
    for each in json.loads((folder / "packages.json").read_text(encoding="utf-8"))["packages"]:
        yield Part("npm", each["name"], each["version"], each["license"], _texts(folder / each["folder"]))


def python(folder: Path) -> Iterator[Part]:
    """Distributions that were installed into ``folder``."""
    for found in distributions(path=[str(folder)]):
        about = found.metadata
        classified = [
            text.rpartition(" :: ")[2] for text in about.get_all("Classifier", []) if text.startswith("License ::")
        ]
        written = about.get("License-Expression") or (about.get("License") or "").split("\n")[0][:80]
        licence = written or ", ".join(classified) or None
        own = [path for path in found.files or () if ".dist-info/" in str(path) and _is_licence(path.name)]
        texts = tuple(path.read_text(encoding="utf-8") for path in own)
        yield Part("pypi", about["Name"].lower(), found.version, licence, texts)


def _is_licence(name: str) -> bool:
    return name.upper().startswith(("LICEN", "COPYING", "NOTICE", "COPYRIGHT"))


def _texts(folder: Path) -> tuple[str, ...]:
    found = (path for pattern in ("*", "third_party/*/*") for path in folder.glob(pattern))
    files = sorted(path for path in found if _is_licence(path.name) and path.is_file())
    return tuple(path.read_text(encoding="utf-8", errors="replace") for path in files)


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


BILL, TEXTS = "nicbench.cdx.json", "THIRD-PARTY-LICENSES.txt"


def write(folder: Path, parts: list[Part], brought: Path | None = None) -> None:
    """Writes both files; their bytes follow from the parts, the files in ``brought`` and $SOURCE_DATE_EPOCH alone."""
    earlier, texts = [], ""
    if brought is not None:
        earlier = json.loads((brought / BILL).read_text(encoding="utf-8"))["components"]
        texts = (brought / TEXTS).read_text(encoding="utf-8").partition("\n")[2]
        (brought / BILL).unlink()
        (brought / TEXTS).unlink()
    parts = sorted(set(parts), key=lambda part: (part.kind, part.name, part.version))
    made = datetime.fromtimestamp(int(environ["SOURCE_DATE_EPOCH"]), UTC)
    main = {"type": "application", "bom-ref": "nicbench", "name": "nicbench", "version": __version__}
    document: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": f"{made:%Y-%m-%dT%H:%M:%SZ}",
            "component": {**main, "licenses": [{"license": {"id": "Apache-2.0"}}]},
        },
        "components": [*(part.component() for part in parts), *earlier],
    }
    named = hashlib.sha256(json.dumps(document).encode()).hexdigest()
    document["serialNumber"] = f"urn:uuid:{uuid.UUID(named[:32])}"
    (folder / BILL).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    with (folder / TEXTS).open("w", encoding="utf-8") as stream:
        stream.write(
            "nicbench itself is under the Apache License 2.0. Inside this package are, under their own licences:\n"
        )
        for part in parts:
            stream.write(f"\n{'=' * 100}\n{part.name} {part.version} ({part.kind}): {part.licence or 'see the text'}\n")
            stream.writelines(f"\n{text.strip()}\n" for text in part.texts)
        stream.write(texts)


if __name__ == "__main__":
    what, target, debs = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if what == "engine":
        write(target, [*crates(), *debian(debs, LINKED), *scripts()])
    else:
        packages = Path(sys.argv[4])
        write(target, [*debian(debs), *python(packages)], packages / "nicbench/bin")
