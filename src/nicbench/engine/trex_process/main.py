"""The process: reads requests, has the session answer them, and writes the replies."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from typing import Any, Dict

from .session import Session


def main() -> None:
    """Answers requests until ``close``, or the end of stdin."""
    # What libraries print must not stand between the replies.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    requests: queue.Queue[Dict[str, Any]] = queue.Queue()
    interrupted = threading.Event()

    def write(message: Dict[str, Any]) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    def read() -> None:
        for line in sys.stdin:
            request = json.loads(line)
            if request["command"] in ("give_back", "close"):
                interrupted.set()
            requests.put(request)
        interrupted.set()
        requests.put({"id": None, "command": "close"})

    threading.Thread(target=read, daemon=True).start()
    session = Session(write, interrupted)
    while True:
        request = requests.get()
        number, command = request.pop("id"), request.pop("command")
        if command == "close":
            write({"id": number, "ok": True})
            os._exit(0)  # threads of the client would keep the interpreter from ending
        try:
            write({"id": number, "ok": True, **getattr(session, "do_" + command)(**request)})
        except Exception as error:
            write({"id": number, "ok": False, "error": session.explain(error)})
