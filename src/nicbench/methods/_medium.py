"""Where the bytes of a transfer come from or go to: memory, or a file in a folder that the bench file names."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from nicbench.model.endpoint import EndpointFacts

MEMORY: Final = "memory"
_FOLDER: Final = re.compile(r"/[A-Za-z0-9._/+-]{1,200}")
_ACCEPTED: Final = "`memory`, a folder (`/mnt/data`), or a folder for each host (`{server: /mnt/data}`)"


def _read(value: Any) -> Any:
    if isinstance(value, dict) and value:
        return {str(host): _folder(folder) for host, folder in value.items()}
    return value if value == MEMORY else _folder(value)


def _folder(value: Any) -> str:
    if not isinstance(value, str) or not _FOLDER.fullmatch(value) or ".." in value.split("/"):
        given = f"`{value}`" if isinstance(value, str | int | float) else "this"
        raise _refusal(f"{given} is no folder: a path from the root, without `..` and blanks")
    return value


def _refusal(why: str) -> PydanticCustomError:
    return PydanticCustomError("quantity", "{why}", {"why": why, "accepted": _ACCEPTED})


Medium = Annotated[str | dict[str, str], BeforeValidator(_read)]
"""``memory``, the folder of every host, or ``{host: folder}``; a host that is not named there has memory."""


def folder_of(medium: str | dict[str, str], end: EndpointFacts) -> str | None:
    """The folder on the host of an endpoint; None where it is memory there."""
    if isinstance(medium, dict):
        return medium.get(end.host)
    return None if medium == MEMORY else medium


def words_of(medium: str | dict[str, str], end: EndpointFacts) -> str:
    """For tables: "memory", "file in /mnt/data"."""
    folder = folder_of(medium, end)
    return MEMORY if folder is None else f"file in {folder}"


def example_of(medium: str | dict[str, str]) -> str | None:
    """Some path, by which a tool can say whether it takes files at all; None of memory."""
    return None if medium == MEMORY else "/folder/file"
