"""Histograms are read in either encoding an engine may send."""

from __future__ import annotations

import base64
import zlib

import pytest
from hdrh.histogram import HdrHistogram

from nicbench.core.errors import HostError
from nicbench.store.samples import decode


def test_the_compressed_encoding_is_read(histogram: HdrHistogram) -> None:
    assert decode(histogram.encode().decode()).equals(histogram)


def test_the_plain_encoding_is_read_and_can_be_written_compressed(histogram: HdrHistogram) -> None:
    wrapped = base64.b64decode(histogram.encode())
    plain = base64.b64encode(zlib.decompress(wrapped[8:])).decode()

    assert decode(plain).equals(histogram)
    assert decode(decode(plain).encode().decode()).equals(histogram)


@pytest.mark.parametrize("damaged", ["", "AAAA", "not base64!", "HISTFAAAAAA="])
def test_a_damaged_histogram_is_an_error_in_words(damaged: str) -> None:
    with pytest.raises(HostError, match="histogram cannot be decoded"):
        decode(damaged)
