"""Scenarios as objects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral, Real
from os import PathLike, fspath
from pathlib import Path
from typing import Union

from . import _native
from ._frames import Frame

Value = Union[str, bool, int, float, None, Sequence[Union[str, bool, int, float]]]
Settings = Mapping[str, Union[Value, "Settings"]]
AnyPath = Union[str, "PathLike[str]"]


class Scenario:
    """A set-up to simulate: hosts, links, Wi-Fi, transports, traffic.

    ``source`` is the name of a scenario that comes with tacit (:func:`tacit.scenarios` lists them), the path of a TOML file, or
    the TOML itself, which a line break tells from the others. ``settings`` go on top: keys as in TOML files, ``"wifi.rate"`` or
    nested dictionaries; values as there, quantities with their unit: ``"65Mbps"``.

    Scenarios do not change: :meth:`changed` gives another one.

    >>> scenario = Scenario("wlan-11n-150", {"wifi.distance": "20 m"})
    >>> scenario["wifi.distance"]
    '20 m'

    Raises :class:`tacit.InputError` for input that is not allowed, with the message of the command line.
    """

    def __init__(
        self, source: str | PathLike[str] = _native.DEFAULT_SCENARIO, settings: Settings | None = None
    ) -> None:
        self._source = fspath(source)
        self._assignments = assignments(settings or {})
        self._name, self._description, self._toml = _native.load(self._source, self._assignments)

    @property
    def name(self) -> str:
        """Its name: as bundled, or the stem of the file."""
        return self._name

    @property
    def description(self) -> str:
        """One line about it."""
        return self._description

    @property
    def toml(self) -> str:
        """The whole of it as TOML, bases and settings merged in."""
        return self._toml

    def changed(self, settings: Settings) -> Scenario:
        """This scenario with other settings."""
        other = Scenario.__new__(Scenario)
        other._source = self._source
        other._assignments = [*self._assignments, *assignments(settings)]
        other._name, other._description, other._toml = _native.load(other._source, other._assignments)
        return other

    def save(self, path: str | PathLike[str]) -> None:
        """Writes it as a TOML file, for the command line."""
        Path(path).write_text(self._toml, encoding="utf-8")

    def check(self, *, scheme: str | None = None, clients: int | None = None) -> None:
        """Raises InputError for a run that would be refused."""
        _native.check(self._source, self._assignments, scheme, clients)

    def explain(self, *keys: str, scheme: str | None = None) -> Frame:
        """Every setting, or those of ``keys``: value, unit, where it comes from, default, allowed values, meaning."""
        return Frame(_native.explain(self._source, self._assignments, scheme, list(keys)).table("settings"))

    def __getitem__(self, key: str) -> Value:
        """The value of a setting, defaults included. InputError for a key that there is not."""
        found = [row["value"] for row in self.explain(key) if row["key"] == key]
        if not found:
            raise KeyError(f"{key} is a table; name a key in it, such as {next(iter(self.explain(key)))['key']}")
        text = str(found[0])
        try:
            value: Value = json.loads(text)
        except ValueError:
            return text
        return value

    def __iter__(self) -> Iterator[str]:
        """The keys of all settings."""
        return (str(row["key"]) for row in self.explain())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self._toml == other._toml

    def __hash__(self) -> int:
        return hash(self._toml)

    def __repr__(self) -> str:
        settings = "".join(f", {text!r}" for text in self._assignments)
        return f"<tacit.Scenario {self._name}{settings}: {self._description}>"

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()


ScenarioLike = Union[Scenario, str, "PathLike[str]"]


def parts(scenario: ScenarioLike, settings: Settings | None = None) -> tuple[str, list[str]]:
    """The arguments of native calls: the source, and assignments."""
    own = assignments(settings or {})
    if isinstance(scenario, Scenario):
        return scenario._source, [*scenario._assignments, *own]
    return fspath(scenario), own


def assignments(settings: Settings, prefix: str = "") -> list[str]:
    """Settings as ``--set`` of the command line takes them."""
    flat: list[str] = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat += assignments(value, f"{prefix}{key}.")
        else:
            flat.append(f"{prefix}{key}={written(value)}")
    return flat


def written(value: Value) -> str:
    """A value as TOML; a text as it stands, for that is how the command line takes it."""
    if isinstance(value, str):
        return value
    if value is None:
        return "none"
    # TOML writes lists, numbers, texts in lists and truth as JSON does.
    return json.dumps(list(value) if isinstance(value, Sequence) else value, default=_plain)


def _plain(value: object) -> int | float:
    """A number of NumPy's as one of Python's."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise TypeError(f"{value!r} is no value of a setting; allowed: text, number, truth, None, or a list of these")


def counts(clients: int | Sequence[int]) -> list[int]:
    """The numbers of clients of a comparison or sweep."""
    # NumPy's integers are none of Python's.
    return [int(clients)] if isinstance(clients, (int, Integral)) else list(clients)
