"""A plugin for pytest: tests over Wi-Fi, in real time, without hardware.

The fixture `wifi` is a live hop of `tacit shell` with two sides, `wifi.client` and `wifi.server`, each a network of its own.
Sockets and programs of a side are behind the hop; the test itself stays where it is.

    import pytest

    @pytest.mark.wifi("wlan-11ax-1200", scheme="stock")
    def test_greeting(wifi):
        listener = wifi.server.listen()
        caller = wifi.client.connect(listener.getsockname())
        caller.sendall(b"hello")
        assert listener.accept()[0].recv(5) == b"hello"

It needs the program `tacit`, and what `tacit doctor` checks: /dev/net/tun, iproute2, and root or unprivileged user
namespaces. Where these are missing, tests are skipped with the reason; with `--wifi-required` they fail.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ._hop import Hop, HopError, Process, Side

__all__ = ["Hop", "HopError", "Process", "Side"]

#: What a mark takes, besides the scenario, and the option of `tacit shell` that it becomes.
OPTIONS = {"scheme": "--scheme", "seed": "--seed", "background": "--background", "acks": "--acks", "congestion": "--congestion"}
#: And what is no such option: a dictionary of keys of the scenario, and whether a run that is not valid is an error.
OTHERS = ("set", "require_valid")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tacit")
    group.addoption("--wifi-required", action="store_true", help="tests over Wi-Fi fail, not skip, where no live hop works")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        'wifi(scenario="wlan-11n-150", *, scheme, seed, background, acks, congestion, set, require_valid): '
        "the hop of the fixture `wifi`, as `tacit shell` makes it",
    )


def program() -> str:
    """Where `tacit` is: in $TACIT, beside this Python, or on the PATH."""
    beside = Path(sys.executable).with_name("tacit")
    found = os.environ.get("TACIT") or (str(beside) if beside.exists() else shutil.which("tacit"))
    if found is None:
        raise HopError("no program tacit: set TACIT, or put it on the PATH")
    return found


def arguments(mark: pytest.Mark | None) -> list[str]:
    """The arguments of `tacit shell` that a mark stands for."""
    positional, named = (mark.args, dict(mark.kwargs)) if mark else ((), {})
    if len(positional) > 1:
        raise HopError(f"mark wifi takes one scenario, not {len(positional)}: {positional}")
    unknown = sorted(set(named) - set(OPTIONS) - set(OTHERS))
    if unknown:
        raise HopError(f"mark wifi: unknown {unknown[0]!r}; allowed: {', '.join([*OPTIONS, *OTHERS])}")
    made = [str(positional[0]) if positional else "wlan-11n-150"]
    for name, option in OPTIONS.items():
        if name in named:
            made += [option, str(named[name])]
    for key, value in named.get("set", {}).items():
        made += ["--set", f"{key}={value}"]
    return made


@pytest.fixture(scope="session")
def _live_hops(request: pytest.FixtureRequest) -> None:
    """Skips or fails where this machine makes no live hop."""
    try:
        said = subprocess.run([program(), "doctor", "--json"], capture_output=True, check=False)
        checks = json.loads(said.stdout)["checks"] if said.stdout else []
        lacking = [f"{check['name']}: {check['found']}" for check in checks if check["required"] and not check["works"]]
        reason = "; ".join(lacking) or said.stderr.decode().strip() if said.returncode else None
    except HopError as error:
        reason = str(error)
    if reason is None:
        return
    if request.config.getoption("--wifi-required"):
        pytest.fail(f"no live hop works here: {reason}", pytrace=False)
    pytest.skip(f"no live hop works here: {reason}")


@pytest.fixture
def wifi(request: pytest.FixtureRequest, _live_hops: None) -> Iterator[Hop]:
    """A live hop between two networks, as the test's mark `wifi` describes it."""
    mark = request.node.get_closest_marker("wifi")
    hop = Hop(program(), arguments(mark))
    try:
        yield hop
    finally:
        report = hop.close()
    if not report["valid"] and (mark is None or mark.kwargs.get("require_valid", True)):
        reasons = "; ".join(report["reasons"])
        pytest.fail(f"the hop was not valid, so this test says nothing: {reasons}. Run it again", pytrace=False)
