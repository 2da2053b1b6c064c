"""Parameters of DCQCN: written where each driver has them, and put back; what a driver lacks is said with a step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nicbench.core.errors import NotReadyError
from nicbench.core.plan import Outcome
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.tune import tune

from ._card import ADDRESS, DEVICE, Card
from .test_adapter_items import asked, tuned

CONFIGFS = "/sys/kernel/config"
DCQCN: tuple[tuple[str, dict[str, str], dict[str, Any], dict[str, str]], ...] = (
    (
        "mlx5 of MLNX_OFED",
        {"ecn/roce_rp/rpg_ai_rate": "5", "ecn/roce_rp/rpg_hai_rate": "50", "ecn/roce_np/cnp_dscp": "48"},
        {"rpg_ai_rate": 10, "cnp_dscp": 46},
        {"ecn/roce_rp/rpg_ai_rate": "10", "ecn/roce_rp/rpg_hai_rate": "50", "ecn/roce_np/cnp_dscp": "46"},
    ),
    (
        "mlx5 of the kernel",
        {f"/sys/kernel/debug/mlx5/{ADDRESS}/cc_params/rp_ai_rate": "5"},
        {"rp_ai_rate": 7},
        {f"/sys/kernel/debug/mlx5/{ADDRESS}/cc_params/rp_ai_rate": "7"},
    ),
    (
        "bnxt_re",
        {
            **{
                f"{CONFIGFS}/bnxt_re/mlx5_0/ports/1/cc/{name}": "0x0" for name in ("ecn_enable", "ecn_marking", "apply")
            },
            f"{CONFIGFS}/bnxt_re/mlx5_0/ports/1/cc/cc_mode": "0",
        },
        {"ecn_enable": True, "ecn_marking": "0x1", "cc_mode": 1},
        {
            f"{CONFIGFS}/bnxt_re/mlx5_0/ports/1/cc/ecn_enable": "1",
            f"{CONFIGFS}/bnxt_re/mlx5_0/ports/1/cc/ecn_marking": "0x1",
            f"{CONFIGFS}/bnxt_re/mlx5_0/ports/1/cc/cc_mode": "1",
            f"{CONFIGFS}/bnxt_re/mlx5_0/ports/1/cc/apply": "0x1",
        },
    ),
    (
        "irdma of ice",
        {f"{CONFIGFS}/irdma/mlx5_0/roce_dcqcn_enable": "0", f"{CONFIGFS}/irdma/mlx5_0/roce_dctcp_enable": "1"},
        {"roce_dcqcn_enable": True},
        {f"{CONFIGFS}/irdma/mlx5_0/roce_dcqcn_enable": "1", f"{CONFIGFS}/irdma/mlx5_0/roce_dctcp_enable": "1"},
    ),
)


def of_net(path: str) -> str:
    return path if path.startswith("/") else f"/sys/class/net/{DEVICE}/{path}"


def with_rdma(card: Card) -> Card:
    link = {"ifindex": 0, "ifname": "mlx5_0", "port": 1, "state": "ACTIVE", "netdev": DEVICE}
    card.answer("rdma -j link show", json.dumps([link]))
    return card


@pytest.mark.parametrize(("driver", "there", "values", "expected"), DCQCN, ids=lambda value: str(value)[:20])
async def test_parameters_of_congestion_control_are_set_where_each_driver_has_them(
    tmp_path: Path, driver: str, there: dict[str, str], values: dict[str, Any], expected: dict[str, str]
) -> None:
    card = with_rdma(Card())
    card.files |= {of_net(path): f"{text}\n" for path, text in there.items()}
    before = {path: text.strip() for path, text in card.files.items()}
    stack = UndoStack("run", None, tmp_path)
    (row,) = await tune(stack, asked(card, "rdma_congestion", values=values))
    assert row.outcome is Outcome.CHANGED, driver
    assert {path: card.files[of_net(path)].strip() for path in expected} == expected
    assert await stack.undo_all() == []
    after = {path: text.strip() for path, text in card.files.items() if not path.endswith("/apply")}
    assert after == {path: text for path, text in before.items() if not path.endswith("/apply")}


async def test_a_driver_without_such_parameters_says_what_would_show_them(tmp_path: Path) -> None:
    with pytest.raises(NotReadyError, match=r"mkdir /sys/kernel/config/bnxt_re/mlx5_0"):
        await tuned(tmp_path, with_rdma(Card()), "rdma_congestion", values={"cc_mode": 1})
    with pytest.raises(NotReadyError, match="it has no RDMA device"):
        await tuned(tmp_path, Card(), "rdma_congestion", values={"cc_mode": 1})


async def test_a_parameter_that_the_driver_lacks_is_refused_with_those_that_it_has(tmp_path: Path) -> None:
    card = with_rdma(Card())
    card.files[f"/sys/class/net/{DEVICE}/ecn/roce_rp/rpg_ai_rate"] = "5\n"
    with pytest.raises(NotReadyError, match="the driver has no rpg_speed; it has rpg_ai_rate"):
        await tuned(tmp_path, card, "rdma_congestion", values={"rpg_speed": 1})
