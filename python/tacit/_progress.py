"""How far long work is: a line on a terminal, and warnings as Python's."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Union

Told = Union[bool, Callable[[int, int], None], None]


class TacitWarning(UserWarning):
    """Something that results do not suffer from, or that makes a number misleading."""


class Progress:
    """Counts runs. ``told`` is called with runs done and runs in all; True draws a line, None draws it on a terminal only."""

    def __init__(self, told: Told) -> None:
        self._call = told if callable(told) else None
        self._draws = told is True or (told is None and sys.stderr.isatty())
        self._done = self._reused = self._total = 0
        self._began = self._drawn = time.monotonic()

    def __call__(self, kind: str, what: int | str, reused: int) -> None:
        """Hears of an event, as native code tells it."""
        if kind == "warning":
            warnings.warn(str(what).removeprefix("warning: "), TacitWarning, stacklevel=4)
        elif kind == "started":
            self.start(int(what), reused)
        else:
            self.finish(int(what))

    def start(self, total: int, reused: int) -> None:
        """Number of runs, and of those that are there."""
        self._total, self._done, self._reused = total, reused, reused
        self._began = time.monotonic()
        self._tell()

    def finish(self, runs: int) -> None:
        """Further runs are there."""
        self._done += runs
        self._tell()

    def _tell(self) -> None:
        if self._call is not None:
            self._call(self._done, self._total)
        now = time.monotonic()
        if self._draws and (now - self._drawn > 0.1 or self._done >= self._total):
            self._drawn = now
            print(f"\r\033[K{self._line(now)}", end="", file=sys.stderr, flush=True)

    def _line(self, now: float) -> str:
        made = self._done - self._reused
        if made == 0 or self._done >= self._total:
            return f"{self._done}/{self._total} runs"
        left_s = (now - self._began) / made * (self._total - self._done)
        return f"{self._done}/{self._total} runs, {_span(left_s)} left"

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._call is not None and self._done < self._total:
            # Runs from the cache are not told one by one.
            self._call(self._total, self._total)
        if self._draws and self._total:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _span(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"
