"""What a machine draws by its own management controller: ``ipmitool dcmi power reading`` (DCMI 1.5 section 6.6.1).

The command "Get Power Reading" gives whole watts. The "sampling period" that ipmitool prints is that of minimum,
maximum and average; over how long the instantaneous reading averages is not in the answer.
"""

from __future__ import annotations

import re
from typing import Final

from nicbench.core.machine import PowerPart
from nicbench.measure.power.base import Sensed, is_plausible

SCRIPT: Final = "timeout 10 ipmitool dcmi power reading"
METHOD: Final = "IPMI"
_LARGEST: Final = 4096
_NOW = re.compile(r"^\s*Instantaneous power reading\s*:\s*(\d{1,9})\s+Watts\s*$", re.MULTILINE)
_STATE = re.compile(r"^\s*Power reading state is\s*:\s*activated\s*$", re.MULTILINE)


def parse_dcmi(text: str) -> tuple[Sensed, ...]:
    """The reading; none where the controller has power measurement switched off, or says nothing of the kind."""
    text = text[:_LARGEST]
    now = _NOW.search(text)
    if now is None or _STATE.search(text) is None or not is_plausible(float(now[1])):
        return ()
    return (Sensed(METHOD, PowerPart.MACHINE, "dcmi", watts=float(now[1]), resolution_watts=1.0),)
