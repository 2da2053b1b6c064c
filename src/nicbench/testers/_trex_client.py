"""TRex's Python client, loaded from the user's installation: it is no package that can be installed beside nicbench."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from nicbench.errors import NotReadyError

# Where the client lies in a release, in a clone of trex-core, and in the client package of a release.
CLIENT_FOLDERS: Final = (
    "automation/trex_control_plane/interactive",
    "scripts/automation/trex_control_plane/interactive",
    "interactive",
    ".",
)
_API: Final = Path("trex/stl/api.py")


def load_api(folder: str) -> ModuleType:
    """``trex.stl.api`` of the installation in ``folder``; NotReadyError where there is none, or it does not load."""
    given = Path(folder).expanduser()
    found = next((place for name in CLIENT_FOLDERS if ((place := given / name) / _API).is_file()), None)
    if found is None:
        raise NotReadyError(
            f"no TRex client is in {given}: it has no {CLIENT_FOLDERS[0]}/{_API}",
            place="tester, client",
            next_step="name the folder of an unpacked TRex release, or of a clone of trex-core",
        )
    _forget_another(found)
    sys.path.insert(0, str(found))
    try:
        return importlib.import_module("trex.stl.api")
    except (Exception, SystemExit) as error:  # it ends the program where its libraries do not suit
        raise NotReadyError(
            f"the TRex client in {found} does not load: {words_of(error)}",
            place="tester, client",
            next_step="take a release that supports this Python, complete with its `external_libs`",
        ) from error
    finally:
        sys.path.remove(str(found))


def _forget_another(found: Path) -> None:
    """Modules of another installation, loaded before in this process, are not this one's."""
    loaded = sys.modules.get("trex.stl.api")
    if loaded is None or Path(str(loaded.__file__)).resolve() != (found / _API).resolve():
        for name in [name for name in sys.modules if name == "trex" or name.startswith("trex.")]:
            del sys.modules[name]


def words_of(error: BaseException) -> str:
    """What an error of TRex says, on one line."""
    return " ".join(str(error).split()) or type(error).__name__
