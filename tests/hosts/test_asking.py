"""Small files of a host, read by path or pattern in one command."""

from __future__ import annotations

from tests.fakes import FakeHost

from nicbench.hosts.asking import paths_and_values, values_of

DEBUGFS = "/sys/kernel/debug/mlx5/0000:af:00.0/cc_params"


async def test_a_folder_may_have_colons() -> None:
    host = FakeHost()
    host.answer(("sh", "-c"), f"{DEBUGFS}/rp_ai_rate:5\n{DEBUGFS}/np_cnp_dscp:0x30:1\n")
    found = await values_of(host, [f"{DEBUGFS}/*"])
    assert found == {f"{DEBUGFS}/rp_ai_rate": "5", f"{DEBUGFS}/np_cnp_dscp": "0x30:1"}


def test_a_path_ends_where_it_fits_what_was_asked_for() -> None:
    text = "/sys/a:0/b:1/name:x/y: z\n/sys/net/e:0/mac:02:00:00:00:00:01\n/sys/other:v:w\nno value\n"
    patterns = ("/sys/a:*/b:[0-9]/name", "/sys/net/'e:0'/mac")
    assert paths_and_values(text, patterns) == {
        "/sys/a:0/b:1/name": "x/y: z",
        "/sys/net/e:0/mac": "02:00:00:00:00:01",
        "/sys/other": "v:w",
    }


def test_many_files_by_name_are_each_found() -> None:
    paths = [f"/proc/irq/{number}/smp_affinity_list" for number in range(20_000)]
    assert len(paths_and_values("\n".join(f"{path}:0-3" for path in paths), paths)) == len(paths)
