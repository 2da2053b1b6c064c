"""A lake in an object store (S3, by moto's server): gathered, read, and refused as one in a folder is."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs
from tests.ports import free_port

from nicbench.core.errors import HostError, UsageError
from nicbench.lake.gathering import gather
from nicbench.lake.place import Lake
from nicbench.lake.searching import LakeFigures, find_in_lake
from nicbench.store.index import Search

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(shutil.which("moto_server") is None, reason="moto_server is not installed"),
]


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a lake in a bucket of a server of our own."""
    port = free_port()
    words = ["moto_server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tester")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "password")
    place = (
        f"s3://nicbench/lake?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1&allow_bucket_creation=true"
    )
    store, _ = fs.FileSystem.from_uri(place)
    for attempt in range(100):
        try:
            store.create_dir("nicbench")
            break
        except OSError:
            assert attempt < 99
            time.sleep(0.2)
    try:
        with store.open_output_stream("nicbench/probe") as stream:
            stream.write(b"probe")
    except OSError as error:
        server.kill()
        pytest.skip(f"this moto cannot complete an upload, as 5.2.5 can: {error}")
    yield place
    server.kill()
    server.wait()


def test_a_lake_in_an_object_store_is_as_one_in_a_folder(runs: Path, tmp_path: Path, address: str) -> None:
    with pytest.raises(UsageError, match="is no lake"):
        Lake.open(address)
    assert len(gather([runs], address).added) == 10
    assert gather([runs], address).known == 10
    gather([runs], tmp_path / "lake")
    stored, folder = Lake.open(address), Lake.open(tmp_path / "lake")
    assert stored.address == "s3://nicbench/lake"
    assert find_in_lake(stored, Search(), 100) == find_in_lake(folder, Search(), 100)
    assert LakeFigures(stored).measures() == LakeFigures(folder).measures()
    assert stored.strangers() == []


def test_a_store_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tester")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "password")
    with pytest.raises(HostError, match="cannot be read") as refused:
        Lake.open("s3://nicbench/lake?endpoint_override=127.0.0.1:1&scheme=http&region=us-east-1")
    assert "s3://nicbench/lake" in (refused.value.place or "")
