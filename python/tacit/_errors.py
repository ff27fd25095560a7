"""Bad input that this half of the package notices."""

from __future__ import annotations

from numbers import Integral

from ._native import InputError

_MOST_SEED = 2**64 - 1


def refusal(place: str, what: str, allowed: str) -> InputError:
    """The exception, with the message and the attributes of those that the native half raises."""
    error = InputError(f"{place}: {what}; allowed: {allowed}")
    error.place, error.what, error.allowed = place, what, allowed
    return error


def checked_seed(seed: object) -> int:
    """A seed as a whole number of Python's; InputError for anything else."""
    # True is a whole number for Python.
    if not isinstance(seed, Integral) or isinstance(seed, bool) or not 0 <= int(seed) <= _MOST_SEED:
        raise refusal("seed", f"{seed!r} is no seed", f"whole numbers from 0 to {_MOST_SEED}")
    return int(seed)


def checked_seeds(seeds: object, place: str = "seeds") -> int | None:
    """A number of seeds; None is the scenario's. Its range is the native half's to check."""
    if seeds is None:
        return None
    if not isinstance(seeds, Integral) or isinstance(seeds, bool) or not 0 <= int(seeds) < 2**32:
        raise refusal(place, f"{seeds!r} is no number of seeds", "1 to 10000")
    return int(seeds)
