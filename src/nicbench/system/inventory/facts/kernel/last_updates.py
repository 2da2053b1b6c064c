"""When software was last installed or updated on this machine."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from nicbench.core.described import Facts, Subject, Write
from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact

# The last words of each package manager's own record; of Debian's also the older log, where the new one is still empty.
_ASK = (
    "if [ -e /var/lib/dpkg/status ]; then cat /var/log/dpkg.log.1 /var/log/dpkg.log 2>/dev/null | grep ' installed '"
    " | tail -n 1; "
    "elif command -v rpm >/dev/null; then rpm -qa --queryformat '%{INSTALLTIME} rpm\\n' | sort -n | tail -n 1; "
    "elif [ -e /var/log/apk.log ]; then grep '^Running\\|^Executed' /var/log/apk.log | tail -n 1; "
    "elif [ -e /lib/apk/db/installed ]; then stat -c '%Y apk' /lib/apk/db/installed; "
    "elif [ -e /var/log/pacman.log ]; then grep 'installed\\|upgraded' /var/log/pacman.log | tail -n 1; fi"
)
_DAY = re.compile(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)(?!\d)")
_SECONDS = re.compile(r"^(\d{9,10}) (?:rpm|apk)\b", re.MULTILINE)


def _tell_last_updates(facts: Facts, write: Write) -> str | None:
    return str(facts["last_updates"]) if facts.get("last_updates") else None


class LastUpdates(Fact):
    """From the log of dpkg, apk or pacman, or the database of rpm."""

    kind = "last_updates"
    shape = str
    of_machine = True
    subjects = (Subject("Last updates", 70, _tell_last_updates),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> str:
        day = parse_last_update(await output_of(host, "sh", "-c", _ASK))
        if day is None:
            raise UnknownFactError("no package manager's record says when")
        return day


def parse_last_update(text: str) -> str | None:
    """The day of the last row, as an ISO date; seconds since 1970 are of UTC."""
    seconds = _SECONDS.findall(text)
    if seconds:
        return datetime.fromtimestamp(int(seconds[-1]), UTC).date().isoformat()
    days = _DAY.findall(text)
    return "-".join(days[-1]) if days else None
