"""The plugin for pytest: a test behind a hop, and errors that say what is wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import pytest_tacit

#: A wheel makes the plugin known to pytest; the source tree alone does not.
PLUGIN = [] if any(entry.value == "pytest_tacit" for entry in entry_points(group="pytest11")) else ["-p", "pytest_tacit"]

ROUND_TRIP = """
import time, pytest

@pytest.mark.wifi("wlan-11n-150", scheme="stock", seed=3, set={"wired.delay": "50 ms"}, require_valid=False)
def test_inner(wifi):
    listener = wifi.server.listen()
    caller = wifi.client.connect(listener.getsockname())
    accepted, (host, _) = listener.accept()
    assert host == wifi.address != wifi.peer == listener.getsockname()[0]
    began = time.monotonic()
    caller.sendall(b"ping")
    assert accepted.recv(4) == b"ping"
    accepted.sendall(b"pong")
    assert caller.recv(4) == b"pong"
    # A busy machine makes it longer, none shorter.
    assert time.monotonic() - began >= 0.1
    report = wifi.close()
    assert (report["scheme"], report["seed"], report["exit_status"]) == ("stock", 3, 0)
"""

PROGRAMS = """
import subprocess, sys, time, pytest

FETCH = "import os, sys, urllib.request as it; print(it.urlopen(f'http://{os.environ[\\"TACIT_PEER\\"]}:{sys.argv[1]}/hello').read())"

@pytest.mark.wifi(require_valid=False)
def test_inner(wifi, tmp_path):
    (tmp_path / "hello").write_text("over the air")
    with (tmp_path / "log").open("wb") as log:
        server = wifi.server.popen([sys.executable, "-u", "-m", "http.server", "8000"], cwd=tmp_path, stdout=log, stderr=log)
    while b"Serving" not in (tmp_path / "log").read_bytes():
        assert server.returncode is None
        time.sleep(0.01)
    done = wifi.client.run([sys.executable, "-c", FETCH, "8000"], check=True)
    assert done.stdout == b"b'over the air'\\n"
    assert wifi.client.run(["sh", "-c", "echo bad >&2; exit 7"]).returncode == 7
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        wifi.client.run(["no-such-program"])
    with pytest.raises(subprocess.TimeoutExpired):
        server.wait(timeout=0.01)
    server.terminate()
    assert server.wait() == -15
    left = wifi.client.popen(["sleep", "1000"])
    wifi.close()
    with pytest.raises(Exception, match="the hop ended before sleep"):
        left.wait()
    with pytest.raises(Exception, match="this side of the hop has ended"):
        wifi.client.socket()
"""


def inner(directory: Path, text: str, *options: str, **environment: str) -> tuple[str, dict[str, int]]:
    """What pytest says of a file of tests, and its counts of outcomes."""
    file = directory / "test_inner.py"
    file.write_text(text, encoding="utf-8")
    root = Path(pytest_tacit.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(root), **environment}
    # This project's own settings are not for them.
    (directory / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", *PLUGIN, *options, str(file)]
    said = subprocess.run(command, capture_output=True, cwd=directory, env=environment, check=False).stdout.decode()
    counts = {name: int(number) for number, name in re.findall(r"(\d+) (passed|failed|skipped|error)", said.splitlines()[-1])}
    return said, counts


@pytest.mark.parametrize("text", [ROUND_TRIP, PROGRAMS], ids=["sockets", "programs"])
def test_a_test_is_behind_the_hop(text: str, tmp_path: Path) -> None:
    said, counts = inner(tmp_path, text)
    if counts == {"skipped": 1} and "no live hop works here" in said:
        pytest.skip("SKIPPED: no live hop works here")
    assert counts == {"passed": 1}, said


def test_the_examples_of_the_page_run(tmp_path: Path) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "use" / "ci.md"
    (text,) = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for name, program in {
        "my-server": "import socket; it = socket.create_server(('', 8080)); it.accept()[0].recv(9); it.accept()",
        # The server may not listen yet.
        "my-client": "import socket, sys, time\n"
        "while True:\n    try:\n        socket.create_connection((sys.argv[1], 8080)).sendall(b'hello'); break\n"
        "    except ConnectionRefusedError:\n        time.sleep(0.01)",
    }.items():
        (tmp_path / name).write_text(f"#!{sys.executable}\n{program}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    said, counts = inner(tmp_path, text)
    if counts == {"skipped": 2} and "no live hop works here" in said:
        pytest.skip("SKIPPED: no live hop works here")
    # On a busy machine a hop has no verdict, which is an error of its test.
    busy = said.count("the hop was not valid, so this test says nothing")
    assert counts["passed"] == 2 and bool(counts.get("error")) == bool(busy), said


def test_a_bad_mark_is_named(tmp_path: Path) -> None:
    marks = {'"wlan-11n-150", sceme="stock"': "unknown 'sceme'; allowed: scheme, seed,", '"a", "b"': "takes one scenario, not 2"}
    for mark, message in marks.items():
        said, counts = inner(tmp_path, f"import pytest\n@pytest.mark.wifi({mark})\ndef test_inner(wifi):\n    pass\n")
        if counts == {"skipped": 1}:
            pytest.skip("SKIPPED: no live hop works here")
        assert counts == {"error": 1} and message in said, said


def test_the_error_of_the_program_is_that_of_the_test(tmp_path: Path) -> None:
    said, counts = inner(tmp_path, "import pytest\n@pytest.mark.wifi('wlan-11n-151')\ndef test_inner(wifi):\n    pass\n")
    if counts == {"skipped": 1}:
        pytest.skip("SKIPPED: no live hop works here")
    assert counts == {"error": 1} and "wlan-11n-151" in said and "tacit shell ended with 2" in said, said


@pytest.mark.parametrize(("options", "outcome"), [((), "skipped"), (("--wifi-required",), "error")])
def test_a_machine_without_hops_is_told_apart(options: tuple[str, ...], outcome: str, tmp_path: Path) -> None:
    """Such a machine skips a test with the reason, or fails it; it never passes."""
    program = tmp_path / "tacit"
    program.write_text(
        "#!/bin/sh\n"
        """echo '{"checks": [{"name": "tun", "found": "no /dev/net/tun", "works": false, "required": true}]}'; exit 1\n""",
        encoding="utf-8",
    )
    program.chmod(0o755)
    said, counts = inner(tmp_path, "def test_inner(wifi):\n    pass\n", *options, TACIT=str(program))
    assert counts == {outcome: 1} and "tun: no /dev/net/tun" in said, said


def test_a_run_that_was_not_valid_is_an_error(tmp_path: Path) -> None:
    program = tmp_path / "tacit"
    program.write_text(
        f"""#!{sys.executable}
import json, subprocess, sys
if sys.argv[1] == "doctor":
    sys.exit(0)
sides = " ".join(sys.argv).split(" -- ")
other = subprocess.Popen(sides[1].split(), env={{"TACIT_ADDRESS": "127.0.0.1"}})
subprocess.run(sides[2].split(), env={{"TACIT_ADDRESS": "127.0.0.1"}})
other.kill()
print(json.dumps({{"valid": False, "reasons": ["stood still for 3 s"]}}))
""",
        encoding="utf-8",
    )
    program.chmod(0o755)
    text = "import pytest\n@pytest.mark.wifi({})\ndef test_inner(wifi):\n    assert wifi.client.run(['true']).returncode == 0\n"
    said, counts = inner(tmp_path, text.format(""), TACIT=str(program))
    assert counts == {"passed": 1, "error": 1} and "stood still for 3 s" in said, said
    assert inner(tmp_path, text.format("require_valid=False"), TACIT=str(program))[1] == {"passed": 1}
