"""Scenarios as objects."""

from __future__ import annotations

from pathlib import Path

import pytest

import tacit
from tacit import InputError, Scenario


def test_a_scenario_is_read_changed_and_written(tmp_path: Path) -> None:
    plain = Scenario("wlan-11n-150")
    changed = plain.changed({"wifi.distance": "20 m", "clients": {"count": 3}, "compare.clients": [2, 3]})
    assert plain.name == "wlan-11n-150" and "802.11n" in plain.description
    assert (changed["wifi.distance"], changed["clients.count"], changed["compare.clients"]) == ("20 m", 3, [2, 3])
    assert changed != plain and plain["clients.count"] == 1
    changed.save(tmp_path / "mine.toml")
    again = Scenario(tmp_path / "mine.toml")
    assert again.toml == changed.toml and again.name == "mine"
    # The TOML itself is a source too.
    assert Scenario(changed.toml)["wifi.distance"] == "20 m"


def test_every_kind_of_value_is_taken() -> None:
    scenario = Scenario("wlan-11n-150", {"tcp.sack": False, "wifi.retry-limit": 5, "run.sample-interval": None})
    assert scenario["tcp.sack"] is False
    assert scenario["wifi.retry-limit"] == 5
    assert scenario["run.sample-interval"] == "none"


def test_numbers_of_numpy_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    scenario = Scenario("wlan-11n-150", {"wifi.retry-limit": numpy.int64(5), "compare.clients": [numpy.int32(2)]})
    assert (scenario["wifi.retry-limit"], scenario["compare.clients"]) == (5, [2])
    with pytest.raises(TypeError, match="no value of a setting"):
        Scenario("wlan-11n-150", {"wifi.retry-limit": object()})  # type: ignore[dict-item]


def test_settings_say_where_they_come_from() -> None:
    scenario = Scenario("wlan-11n-150", {"wifi.retry-limit": 5})
    [setting] = scenario.explain("wifi.retry-limit").rows()
    assert (setting["value"], setting["origin"], setting["default"]) == ("5", "--set", "7")
    assert "wifi.rate" in list(scenario)
    assert scenario.explain("tcp.ack-every", scheme="tcp-l8")["value"] == ["8"]
    with pytest.raises(KeyError, match="tcp is a table; name a key in it, such as tcp.profile"):
        scenario["tcp"]


@pytest.mark.parametrize(
    ("source", "settings", "place", "what", "allowed"),
    [
        ("wlan-11n-150", {"wifi.retry-limit": 300}, "--set", "wifi.retry-limit", "0 to 255"),
        ("wlan-11n-15", {}, "scenario", "did you mean", "wlan-11n-150"),
        ("[wifi\n", {}, "text:1", "not TOML", None),
        ("wlan-11n-150", {"wifi.sped": "1Mbps"}, "--set", "wifi.sped", None),
    ],
)
def test_mistakes_have_the_command_line_s_words(
    source: str, settings: dict[str, tacit._scenario.Value], place: str, what: str, allowed: str | None
) -> None:
    with pytest.raises(InputError) as caught:
        Scenario(source, settings)
    error = caught.value
    assert error.place.startswith(place) or place == "--set"
    assert what in str(error)
    assert allowed is None or allowed in (error.allowed or "")
    assert "\n" not in str(error)


def test_what_cannot_run_is_refused_before() -> None:
    scenario = Scenario("wlan-11n-150")
    scenario.check(clients=41, scheme="hack-batch")
    with pytest.raises(InputError, match=r"client 42: starts at 4\.1s, when results count since 4s.*clients\.stagger"):
        scenario.check(clients=100)
    with pytest.raises(InputError, match=r"clients: 1001 is out of range; allowed: 1 to 1000"):
        scenario.check(clients=1_001)
    with pytest.raises(InputError, match='unknown scheme "hak"'):
        scenario.check(scheme="hak")


def test_what_there_is_is_listed() -> None:
    assert "wlan-11n-150" in tacit.scenarios()["name"]
    assert dict(zip(tacit.schemes()["name"], tacit.schemes()["by_default"]))["stock"] == 1
    assert "goodput_bps" in tacit.metrics()["name"]
    assert "hack/fig9" in tacit.figures()["id"]
    assert tacit.__version__.count(".") == 2


def test_several_links_are_settings_and_metrics() -> None:
    short = {"run.duration": "600ms", "run.measure-from": "200ms"}
    laptop = Scenario("wlan-11be-mlo-laptop", short)
    assert laptop["wifi.multi-link.mode"] == "emlsr"
    changed = laptop.changed({"wifi.link[2].mcs": 5, "wifi.multi-link": {"acks": "idlest", "map": {"vo": [1]}}})
    assert changed["wifi.link[2].mcs"] == 5 and changed["wifi.multi-link.acks"] == "idlest"
    one_radio = tacit.run(laptop).metrics
    assert one_radio["icfs_per_s"] > 0 and 0.5 < one_radio["radio_busy_share"] <= 1
    both = tacit.run(laptop, {"wifi.multi-link.mode": "str"}).metrics
    links = [both[f"link{number}_goodput_bps"] for number in (1, 2)]
    assert min(links) > 0 and sum(links) == pytest.approx(both["goodput_bps"], rel=0.05)
    with pytest.raises(InputError, match="no such link"):
        Scenario("wlan-11be-mlo-laptop", {"wifi.multi-link.acks": 3})
