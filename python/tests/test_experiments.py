"""ACK policies, controllers and schedulers in Python."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import tacit
from tacit import AckPolicy, Controller, Scheduler
from tacit.experiments import Acknowledged, Arrival, ReadyUser, Steering, UplinkClient

SECOND = {"run.duration": "1s", "run.measure-from": "200ms", "run.sample-interval": "none"}


class Every(AckPolicy):
    """One ACK per so many segments, else after 40 ms; each of the first 16, and of the 16 after something out of order:
    as ``tcp.ack-policy = "delayed"``."""

    segments = 4

    def __init__(self) -> None:
        self.waiting = 0
        self.quick = 16

    def on_data(self, arrival: Arrival) -> float | None:
        self.waiting += 1
        if not arrival.in_order:
            self.quick = 16
            return 0
        if self.quick > 0:
            self.quick -= 1
            return 0
        if self.waiting >= self.segments:
            return 0
        return 0.04 if self.waiting == 1 else None

    def on_ack_sent(self) -> None:
        self.waiting = 0


@pytest.mark.parametrize("segments", [1, 2, 8])
@pytest.mark.parametrize("losses", ["0 %", "2 %"])
def test_a_policy_makes_the_very_run_of_the_built_in_one(segments: int, losses: str) -> None:
    settings = {**SECOND, "wifi.mpdu-error": losses}
    policy = type("Own", (Every,), {"segments": segments})
    own = tacit.run("wlan-11n-150", settings, ack_policy=policy)
    built_in = tacit.run("wlan-11n-150", {**settings, "tcp.ack-policy": "delayed", "tcp.ack-every": segments})
    assert own.flows["acks_sent"] == built_in.flows["acks_sent"]
    assert own.digest == built_in.digest
    assert any("Own, which Python brought" in warning for warning in own.warnings)


def test_a_policy_s_run_repeats_and_is_not_kept_as_another_s() -> None:
    first, second = (tacit.run("wlan-11n-150", SECOND, ack_policy=Every) for _ in range(2))
    assert first.digest == second.digest != tacit.run("wlan-11n-150", SECOND).digest


def test_policies_ride_on_hack_too() -> None:
    own = tacit.run("wlan-11n-150", SECOND, scheme="hack-more-data", ack_policy=Every)
    settings = {**SECOND, "tcp.ack-policy": "delayed", "tcp.ack-every": Every.segments}
    built_in = tacit.run("wlan-11n-150", settings, scheme="hack-more-data")
    assert own.digest == built_in.digest
    [compressed] = own.flows["compressed_acks"]
    assert isinstance(compressed, int) and compressed > 500


class Window(Controller):
    """Never anything but this."""

    size_bytes = 20 * 1448

    def on_ack(self, ack: Acknowledged) -> Steering:
        assert ack.in_flight_bytes <= self.size_bytes + self.mss
        return self.size_bytes


@pytest.mark.parametrize(("transport", "least"), [("tcp", 0.95), ("tack", 0.75)])
def test_a_window_brings_a_window_a_round_trip(transport: str, least: float) -> None:
    settings = {**SECOND, "wired.delay": "50 ms", "traffic.transport": transport, "tcp.pacing": False}
    if transport == "tack":
        # By TACK's own clock the sender has room beyond the window, for bytes that arrived and are not reported yet.
        settings["tack.ack-clock"] = "paper"
    run = tacit.run("wlan-11n-150", settings, controller=Window)
    # A round trip is 100 ms and the time of the Wi-Fi; an ACK of TACK waits for a quarter of it.
    most = Window.size_bytes * 8 / 0.1
    assert least * most < run.goodput_bps <= most


def test_a_rate_is_paced() -> None:
    class Paced(Window):
        def on_ack(self, ack: Acknowledged) -> Steering:
            return 1 << 20, 8_000_000

    run = tacit.run("wlan-11n-150", {**SECOND, "run.measure-from": "500ms"}, controller=Paced)
    assert run.goodput_bps == pytest.approx(8e6, rel=0.02)


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        (AckPolicy, NotImplementedError),
        (type("Bad", (AckPolicy,), {"on_data": lambda self, arrival: "soon"}), TypeError),
        (type("Past", (AckPolicy,), {"on_data": lambda self, arrival: -1.0}), ValueError),
        (type("NoTime", (AckPolicy,), {"on_data": lambda self, arrival: float("nan")}), ValueError),
        (type("Broken", (AckPolicy,), {"on_data": lambda self, arrival: 1 / 0}), ZeroDivisionError),
    ],
)
def test_what_a_policy_raises_comes_out(policy: type[AckPolicy], error: type[Exception]) -> None:
    with pytest.raises(error):
        tacit.run("wlan-11n-150", SECOND, ack_policy=policy)


def test_what_a_controller_raises_comes_out() -> None:
    class Negative(Controller):
        def on_ack(self, ack: Acknowledged) -> Steering:
            return -5

    for wrong in (Negative, Controller):
        with pytest.raises((OverflowError, TypeError, NotImplementedError)):
            tacit.run("wlan-11n-150", SECOND, controller=wrong)
    with pytest.raises(ValueError, match="allowed: a class"):
        tacit.run("wlan-11n-150", SECOND, controller=5)  # type: ignore[arg-type]


class InTurns(Scheduler):
    """As the access point does by itself with `wifi.ofdma-sharing = "most"`."""

    def downlink(self, now: float, ready: Sequence[ReadyUser], most: int) -> Sequence[int]:
        assert 0 < len(ready) <= 4 and most == 4
        assert all(user.packets > 0 and user.queued_bytes >= 40 * user.packets for user in ready)
        # As many as leave none of the units of 80 MHz over.
        return range(max(users for users in (1, 2, 4) if users <= len(ready)))


OFDMA = {
    "run.duration": "1s",
    "run.measure-from": "300ms",
    "clients.count": 4,
    "wifi.ofdma": "mu-bar",
    "wifi.ofdma-users": 4,
}


def test_a_scheduler_takes_turns_as_the_access_point_does() -> None:
    own = tacit.run("wlan-11ax-1200", OFDMA, scheduler=InTurns)
    assert own.digest == tacit.run("wlan-11ax-1200", {**OFDMA, "wifi.ofdma-sharing": "most"}).digest
    assert own.stations["shared_ppdus"][0] > 50


def test_a_scheduler_serves_and_asks_those_it_chooses() -> None:
    class OneAtATime(Scheduler):
        def downlink(self, now: float, ready: Sequence[ReadyUser], most: int) -> Sequence[int]:
            longest = max(range(len(ready)), key=lambda user: ready[user].queued_bytes)
            return [longest]

        def uplink(self, now: float, clients: Sequence[UplinkClient], most: int) -> Sequence[int]:
            return [at for at, client in enumerate(clients) if client.sent_mpdus > 0 or client.reported_bytes > 0]

    run = tacit.run("wlan-11ax-1200", OFDMA, scheduler=OneAtATime)
    assert run.stations["shared_ppdus"][0] == 0
    assert run.stations["triggers"][0] > 50
    assert run.goodput_bps > 100e6


def test_a_scheduler_needs_resource_units_and_an_answer() -> None:
    with pytest.raises(ValueError, match="wifi.ofdma"):
        tacit.run("wlan-11ax-1200", {**OFDMA, "wifi.ofdma": "off"}, scheduler=InTurns)
    with pytest.raises(NotImplementedError):
        tacit.run("wlan-11ax-1200", OFDMA, scheduler=Scheduler)
