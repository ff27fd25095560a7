"""Classes of one's own as schemes of comparisons and sweeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import SHORT

import tacit
from tacit import AckPolicy, Controller, InputError, OwnScheme, Scheduler
from tacit.experiments import Acknowledged, Arrival, Steering


class EverySegment(AckPolicy):
    def on_data(self, arrival: Arrival) -> float:
        return 0


class SmallWindow(Controller):
    def on_ack(self, ack: Acknowledged) -> Steering:
        return 4 * self.mss


def rows(comparison: tacit.Comparison) -> dict[str, dict[str, Any]]:
    return {str(row["scheme"]): dict(row) for row in comparison.rows}


def test_a_class_is_a_scheme_beside_those_of_tacit() -> None:
    riding = OwnScheme("hack-every-segment", ack_policy=EverySegment, scheme="hack-batch")
    comparison = tacit.compare(
        "wlan-11n-150", SHORT, schemes=["stock", EverySegment, SmallWindow, riding], clients=1, seeds=2
    )
    found = rows(comparison)
    assert {"stock", "every-segment", "small-window", "hack-every-segment"} <= set(found)
    assert found["every-segment"]["acks_per_data_packet"] > 0.9 > 2 * found["stock"]["acks_per_data_packet"]
    assert found["small-window"]["goodput_bps_mean"] < found["stock"]["goodput_bps_mean"] / 2
    # Its ACKs ride on link-layer ACKs.
    assert found["hack-every-segment"]["tcp_acks_on_air_per_s"] < found["every-segment"]["tcp_acks_on_air_per_s"]
    assert "every-segment" in str(comparison)
    # Each seed is the run that tacit.run makes.
    one = tacit.run("wlan-11n-150", SHORT, clients=1, seed=1, ack_policy=EverySegment).goodput_bps
    two = tacit.run("wlan-11n-150", SHORT, clients=1, seed=2, ack_policy=EverySegment).goodput_bps
    assert found["every-segment"]["goodput_bps_mean"] == pytest.approx((one + two) / 2)


def test_runs_of_another_class_of_this_name_are_not_taken_for_its_own(tmp_path: Path) -> None:
    def goodput(segments: int) -> float:
        class Fixed(Controller):
            def on_ack(self, ack: Acknowledged) -> Steering:
                return segments * self.mss

        kept = tacit.compare("wlan-11n-150", SHORT, schemes=[Fixed], clients=1, seeds=1, directory=tmp_path / "kept")
        assert (tmp_path / "kept" / "index.html").is_file()
        return float(rows(kept)["fixed"]["goodput_bps_mean"])

    assert goodput(4) < goodput(40) / 2


def test_a_sweep_has_rows_of_a_class(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    sweep = tacit.sweep(
        "wlan-11n-150",
        {"wifi.distance": ["5 m", "10 m"]},
        SHORT,
        schemes=["stock", EverySegment],
        clients=1,
        seeds=1,
        directory=tmp_path / "own",
    )
    runs = [(row["scheme"], row["wifi.distance_m"], row["goodput_bps"]) for row in sweep.frame]
    assert sorted((scheme, place) for scheme, place, _ in runs) == [
        ("every-segment", 5.0),
        ("every-segment", 10.0),
        ("stock", 5.0),
        ("stock", 10.0),
    ]
    assert all(goodput > 0 for *_, goodput in runs)
    with pytest.raises(InputError, match="has runs already"):
        tacit.sweep("wlan-11n-150", settings=SHORT, schemes=[EverySegment], directory=tmp_path / "own")


def test_what_is_no_scheme_is_refused() -> None:
    class Broken(AckPolicy):
        def on_data(self, arrival: Arrival) -> float:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tacit.compare("wlan-11n-150", SHORT, schemes=[Broken], clients=1, seeds=1)
    for wrong, text in [
        (int, "int is no scheme"),
        (5, "5 is no scheme"),
        (OwnScheme("stock", ack_policy=EverySegment), "there is a scheme"),
        (OwnScheme("two words", ack_policy=EverySegment), "is no name of a scheme"),
        (OwnScheme("own", ack_policy=EverySegment, scheme="hack"), "did you mean"),
    ]:
        with pytest.raises(InputError, match=text):
            tacit.compare("wlan-11n-150", SHORT, schemes=[wrong], clients=1, seeds=1)  # type: ignore[list-item]
    with pytest.raises(ValueError, match="wifi.ofdma"):
        tacit.compare("wlan-11n-150", SHORT, schemes=[OwnScheme("turns", scheduler=Scheduler)], clients=1, seeds=1)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "7", None, True])
def test_a_bad_seed_is_bad_input(seed: Any) -> None:
    with pytest.raises(InputError) as raised:
        tacit.run("wlan-11n-150", SHORT, seed=seed)
    assert (raised.value.place, raised.value.allowed) == ("seed", "whole numbers from 0 to 18446744073709551615")
    with pytest.raises(InputError):
        tacit.compare("wlan-11n-150", SHORT, schemes=["stock"], seeds=-1 if seed is None else seed)


def test_seeds_of_numpy_are_seeds() -> None:
    numpy = pytest.importorskip("numpy")
    assert tacit.run("wlan-11n-150", SHORT, seed=numpy.int64(3)).digest == tacit.run("wlan-11n-150", SHORT, seed=3).digest
