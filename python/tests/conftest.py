"""Fixtures of the tests: short runs, and a cache of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

#: A run of a fifth of a second.
SHORT = {"run.duration": "200ms", "run.measure-from": "50ms", "clients.stagger": "10ms"}


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Results of the tests are no results of the user's."""
    os.environ["TACIT_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    yield
    del os.environ["TACIT_CACHE_DIR"]


@pytest.fixture(scope="session")
def shared() -> Path:
    """Captures that others made; tests that need them skip where they are not."""
    place = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    if not place.is_dir():
        pytest.skip(f"no captures in {place}")
    return place
