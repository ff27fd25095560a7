"""Gymnasium environments: an agent is the ACK policy of a receiver, or the congestion control of a sender.

An episode is one run of a scenario with one connection. The simulator waits for an action at each decision, so that an agent of any speed
gives the same run: equal seeds and equal actions make equal episodes. Needs gymnasium: ``pip install 'tacit[gym]'``.

>>> import gymnasium, tacit.gym  # doctest: +SKIP
>>> env = gymnasium.make("tacit/Acks-v0", scenario="wlan-11ac-866")  # doctest: +SKIP
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Optional, Union

import gymnasium
import numpy
from gymnasium import spaces

from . import _native
from ._calls import run
from ._errors import refusal
from ._results import Run
from ._scenario import ScenarioLike, Settings
from .experiments import Acknowledged, AckPolicy, Arrival, Controller, Steering

__all__ = ["AckEnv", "ControllerEnv"]

Observation = "numpy.ndarray[Any, numpy.dtype[numpy.float32]]"
#: An observation, and the reward since the last one.
Decision = "tuple[list[float], float]"

#: Largest value in an observation; larger ones are cut.
_MOST = 1e6
#: Settings of an episode unless others are given: one client, and a second after the start of its connection.
_SHORT: Settings = {"run.duration": "1s", "run.measure-from": "200ms", "clients.count": 1}


class _Stopped(Exception):
    """The episode is given up."""


class _Episode:
    """A run in a thread of its own, which stands still at each decision."""

    def __init__(self, simulate: Callable[[_Episode], Run]) -> None:
        self._asked: SimpleQueue[Union[tuple[list[float], float], Run, BaseException]] = SimpleQueue()
        self._answers: SimpleQueue[Any] = SimpleQueue()
        self._thread = threading.Thread(target=self._simulate, args=(simulate,), name="tacit.gym", daemon=True)
        self._who: Optional[object] = None
        self._thread.start()

    def _simulate(self, simulate: Callable[[_Episode], Run]) -> None:
        try:
            self._asked.put(simulate(self))
        except BaseException as error:  # The caller's thread raises it.
            self._asked.put(error)

    def decide(self, who: object, observed: list[float], reward: float) -> Any:
        """Called by the thread: the action that the agent takes. ``who`` is the end of a connection that asks."""
        # Each end of each connection has an object, of which those decide that have data.
        if self._who is None:
            self._who = who
        if self._who is not who:
            raise refusal("scenario", "several ends of connections decide", "one: clients.count = 1 and one flow")
        self._asked.put((observed, reward))
        answer = self._answers.get()
        if isinstance(answer, _Stopped):
            raise answer
        return answer

    def next(self) -> tuple[list[float], float] | Run:
        """The next decision, or the finished run."""
        asked = self._asked.get()
        if isinstance(asked, BaseException):
            self._thread.join()
            raise asked
        return asked

    def answer(self, action: Any) -> None:
        self._answers.put(action)

    def stop(self) -> None:
        """Ends the run early: without the agent it takes milliseconds to its end."""
        self._answers.put(_Stopped())
        self._thread.join()


class _Env(gymnasium.Env[Any, Any]):
    """What both environments have in common."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012
    #: Names of the values in an observation, which end in their unit.
    FIELDS: tuple[str, ...] = ()

    def __init__(
        self,
        scenario: ScenarioLike = _native.DEFAULT_SCENARIO,
        settings: Optional[Settings] = None,
        *,
        scheme: Optional[str] = None,
    ) -> None:
        self._scenario = scenario
        self._settings: Settings = {**_SHORT, **(settings or {})}
        self._scheme = scheme
        self._episode: Optional[_Episode] = None
        self._last = numpy.zeros(len(self.FIELDS), dtype=numpy.float32)
        self.observation_space = spaces.Box(0.0, _MOST, (len(self.FIELDS),), numpy.float32)

    def _simulate(self, episode: _Episode, seed: int) -> Run:
        raise NotImplementedError

    def reset(self, *, seed: Optional[int] = None, options: Optional[dict[str, Any]] = None) -> tuple[Any, dict[str, Any]]:
        """Begins a run. Its seed, which ``tacit.run`` takes, is in the information."""
        super().reset(seed=seed)
        self.close()
        own = int(self.np_random.integers(2**32))
        self._episode = _Episode(lambda episode: self._simulate(episode, own))
        first = self._episode.next()
        if isinstance(first, Run):
            self._episode = None
            raise refusal("scenario", "its run ended without a decision", "a scenario with a TCP download or upload")
        return self._seen(first[0]), {"seed": own}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Takes the action and goes to the next decision, or to the end of the run, whose result is then in ``info["run"]``."""
        if self._episode is None:
            raise gymnasium.error.ResetNeeded("reset() begins an episode")
        self._episode.answer(action)
        following = self._episode.next()
        if isinstance(following, Run):
            self._episode = None
            return self._last, 0.0, True, False, {"run": following, "goodput_bps": following.goodput_bps}
        return self._seen(following[0]), following[1], False, False, {}

    def close(self) -> None:
        """Gives the current run up."""
        if self._episode is not None:
            self._episode.stop()
            self._episode = None

    def _seen(self, values: list[float]) -> Any:
        self._last = numpy.clip(numpy.asarray(values, dtype=numpy.float32), 0.0, _MOST)
        return self._last


class AckEnv(_Env):
    """The agent decides at each segment with new data whether its receiver acknowledges now (1) or waits (0).

    A waiting receiver acknowledges after ``most_wait_s`` at the latest. The reward is the new data that arrived since the last
    decision, in megabits: the return of an episode is what the receiver got.
    """

    FIELDS = (
        "since_last_ms",
        "new_kbytes",
        "in_order",
        "above_gaps_kbytes",
        "unacknowledged_kbytes",
        "rtt_min_ms",
        "smoothed_rtt_ms",
    )

    def __init__(
        self,
        scenario: ScenarioLike = _native.DEFAULT_SCENARIO,
        settings: Optional[Settings] = None,
        *,
        scheme: Optional[str] = None,
        most_wait_s: float = 0.025,
    ) -> None:
        super().__init__(scenario, settings, scheme=scheme)
        self._most_wait_s = most_wait_s
        self.action_space = spaces.Discrete(2)

    def _simulate(self, episode: _Episode, seed: int) -> Run:
        most_wait_s = self._most_wait_s

        class Agent(AckPolicy):
            def __init__(self) -> None:
                self._last = 0.0
                self._waiting = 0

            def on_data(self, arrival: Arrival) -> float | None:
                was_waiting, self._waiting = self._waiting > 0, self._waiting + arrival.new_bytes
                since, self._last = arrival.now - self._last, arrival.now
                observed = [
                    since * 1e3,
                    arrival.new_bytes / 1e3,
                    float(arrival.in_order),
                    arrival.waiting_bytes / 1e3,
                    self._waiting / 1e3,
                    (arrival.rtt_min or 0.0) * 1e3,
                    (arrival.smoothed_rtt or 0.0) * 1e3,
                ]
                if episode.decide(self, observed, arrival.new_bytes * 8 / 1e6):
                    return 0
                return None if was_waiting else most_wait_s

            def on_ack_sent(self) -> None:
                self._waiting = 0

        return run(self._scenario, self._settings, scheme=self._scheme, seed=seed, ack_policy=Agent)


class ControllerEnv(_Env):
    """The agent sets the window of a sender, every ``interval_s`` at an ACK: an action of ``a`` multiplies it by ``2**a``.

    The reward is the data delivered since the last decision less the data lost, in megabits, and less ``delay_weight`` times the
    megabits delivered for each minimum round-trip time that packets wait in queues. The transport finds and repairs losses itself.
    """

    FIELDS = (
        "since_last_ms",
        "delivered_kbytes",
        "lost_kbytes",
        "in_flight_kbytes",
        "window_kbytes",
        "rtt_ms",
        "rtt_min_ms",
        "delivery_rate_mbps",
    )

    def __init__(
        self,
        scenario: ScenarioLike = _native.DEFAULT_SCENARIO,
        settings: Optional[Settings] = None,
        *,
        scheme: Optional[str] = None,
        interval_s: float = 0.01,
        delay_weight: float = 0.0,
    ) -> None:
        super().__init__(scenario, settings, scheme=scheme)
        self._interval_s = interval_s
        self._delay_weight = delay_weight
        self.action_space = spaces.Box(-1.0, 1.0, (1,), numpy.float32)

    def _simulate(self, episode: _Episode, seed: int) -> Run:
        interval_s, delay_weight = self._interval_s, self._delay_weight

        class Agent(Controller):
            def __init__(self, mss: int, initial_window: int) -> None:
                super().__init__(mss, initial_window)
                self._window = float(initial_window)
                self._since, self._delivered, self._lost = 0.0, 0, 0
                self._rtt = self._rtt_min = 0.0

            def on_ack(self, ack: Acknowledged) -> Steering:
                self._delivered += ack.delivered_bytes
                self._lost += ack.lost_bytes
                if ack.rtt is not None:
                    self._rtt = ack.rtt
                    self._rtt_min = min(self._rtt_min or ack.rtt, ack.rtt)
                elapsed = ack.now - self._since
                # The other end of the connection, which sends no data, has its handshake acknowledged.
                if elapsed < interval_s or self._delivered < self.mss:
                    return None
                queueing = max(0.0, self._rtt / self._rtt_min - 1.0) if self._rtt_min else 0.0
                delivered, lost = self._delivered * 8 / 1e6, self._lost * 8 / 1e6
                observed = [
                    elapsed * 1e3,
                    self._delivered / 1e3,
                    self._lost / 1e3,
                    ack.in_flight_bytes / 1e3,
                    self._window / 1e3,
                    self._rtt * 1e3,
                    self._rtt_min * 1e3,
                    (ack.delivery_rate_bps or 0) / 1e6,
                ]
                action = episode.decide(self, observed, delivered - lost - delay_weight * queueing * delivered)
                self._since, self._delivered, self._lost = ack.now, 0, 0
                # No window below two segments moves data, and none beyond 64 MiB is in any network here.
                grown = self._window * 2.0 ** float(numpy.clip(action, -1.0, 1.0)[0])
                self._window = min(max(grown, 2.0 * self.mss), 64.0 * 2**20)
                return int(self._window)

        return run(self._scenario, self._settings, scheme=self._scheme, seed=seed, controller=Agent)


gymnasium.register(id="tacit/Acks-v0", entry_point="tacit.gym:AckEnv")
gymnasium.register(id="tacit/Controller-v0", entry_point="tacit.gym:ControllerEnv")
