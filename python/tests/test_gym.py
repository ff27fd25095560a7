"""Environments for agents that learn."""

from __future__ import annotations

from typing import Any

import pytest

import tacit

gymnasium = pytest.importorskip("gymnasium", reason="SKIPPED: no gymnasium; pip install 'tacit[gym]'")
from gymnasium.utils.env_checker import check_env  # noqa: E402

from tacit.gym import AckEnv, ControllerEnv  # noqa: E402

SHORT = {"run.duration": "300ms", "run.measure-from": "100ms"}


@pytest.mark.parametrize("environment", [AckEnv, ControllerEnv])
def test_gymnasium_finds_nothing_wrong(environment: Any) -> None:
    env = environment(settings=SHORT)
    check_env(env, skip_render_check=True)
    env.close()


def finished(env: Any, act: Any, seed: int) -> tuple[dict[str, Any], float, int]:
    observed, begun = env.reset(seed=seed)
    total, steps, done = 0.0, 0, False
    while not done:
        assert env.observation_space.contains(observed)
        observed, reward, done, truncated, info = env.step(act(observed))
        total, steps = total + reward, steps + 1
        assert not truncated
    return {**begun, **info}, total, steps


def test_an_agent_is_the_policy_that_does_the_same() -> None:
    class AtOnce(tacit.AckPolicy):
        def on_data(self, arrival: tacit.experiments.Arrival) -> float:
            return 0

    info, total, steps = finished(AckEnv(settings=SHORT), lambda observed: 1, 7)
    settings = {**SHORT, "clients.count": 1}
    own = tacit.run("wlan-11n-150", settings, seed=info["seed"], ack_policy=AtOnce)
    assert info["run"].digest == own.digest
    assert info["goodput_bps"] == own.goodput_bps and steps > 100
    # What arrived, in megabits, but for that of the last decision and before measuring began.
    assert total > own.goodput_bps / 1e6 * 0.2 * 0.9


def test_fewer_acks_are_fewer() -> None:
    def acks(action: int) -> float:
        info, *_ = finished(AckEnv(settings=SHORT), lambda observed: action, 1)
        return float(info["run"].flows["acks_sent"][0])

    assert acks(0) < acks(1) / 3


def test_a_window_that_grows_carries_more() -> None:
    def goodput(action: float) -> float:
        info, *_ = finished(ControllerEnv(settings=SHORT), lambda observed: [action], 1)
        return float(info["goodput_bps"])

    assert goodput(1.0) > 2 * goodput(-1.0)


def test_an_episode_can_be_left_and_an_error_comes_out() -> None:
    env = AckEnv(settings=SHORT)
    for _ in range(3):
        env.reset()
        env.step(1)
    env.close()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(1)
    with pytest.raises(tacit.InputError, match="several ends"):
        several = AckEnv(settings={**SHORT, "clients.count": 3, "clients.stagger": "10ms"})
        finished(several, lambda observed: 1, 1)
    with pytest.raises(tacit.InputError):
        AckEnv("no-such-scenario").reset()
    with pytest.raises(tacit.InputError, match="without a decision"):
        AckEnv(settings=SHORT, scheme="udp").reset()


def test_they_are_registered() -> None:
    for name in ("tacit/Acks-v0", "tacit/Controller-v0"):
        env = gymnasium.make(name, settings=SHORT)
        env.reset(seed=3)
        env.close()
