"""JSON as the pages get it: in ASCII, so that no text of a stranger steers a terminal and any file name can be told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response


def json_line(content: Any) -> str:
    """Writes JSON on one line. What is not ASCII is written by number; half a character, as in a broken name, too."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def json_answer(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Answers with JSON."""
    return Response(json_line(content), status, headers, "application/json")
