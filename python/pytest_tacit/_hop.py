"""A live hop, and its two sides, from the place of the test."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from socket import socket as Socket
from typing import IO, Any

from . import _side

#: How long a hop may take until both of its sides are there, in seconds.
PATIENCE = 60.0


class HopError(Exception):
    """A hop that cannot be made, or that ended before the test."""


class Process:
    """A program on one side of a hop. It ends with the hop at the latest."""

    def __init__(self, connection: Socket, args: list[str]) -> None:
        self._connection = connection
        self.args = args
        #: The program's exit code, or the negative number of the signal that ended it; `None` while it runs.
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end. Raises subprocess.TimeoutExpired after `timeout` seconds, and HopError if the hop ends first."""
        if self.returncode is None:
            self._connection.settimeout(timeout)
            try:
                code = _side.receive(self._connection)[0]["returncode"]
            except TimeoutError:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0) from None
            except (EOFError, OSError) as error:
                raise HopError(f"the hop ended before {self.args[0]}") from error
            self.returncode = int(code)
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends a signal to the program and its children; nothing if it has ended."""
        if self.returncode is None:
            self._connection.settimeout(None)
            _side.send(self._connection, {"signal": int(number)})

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Side:
    """One side of a hop: a network of its own."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._addresses: dict[str, str] = {}

    @property
    def address(self) -> str:
        """The IPv4 address of this side."""
        return self._addresses["TACIT_ADDRESS"]

    def _ask(self, what: dict[str, Any], descriptors: tuple[int, ...] = ()) -> tuple[Socket, dict[str, Any], list[int]]:
        connection = Socket(socket.AF_UNIX)
        try:
            connection.connect(self._path)
            _side.send(connection, what, descriptors)
            answer, received = _side.receive(connection)
        except (OSError, EOFError) as error:
            connection.close()
            raise HopError("this side of the hop has ended") from error
        return connection, answer, received

    def socket(
        self, family: int = socket.AF_INET, type: int = socket.SOCK_STREAM, proto: int = 0
    ) -> Socket:
        """A new socket in this side's network."""
        connection, _, received = self._ask({"do": "socket", "family": int(family), "type": int(type), "proto": proto})
        connection.close()
        return Socket(fileno=received[0])

    def listen(self, port: int = 0) -> Socket:
        """A TCP socket that listens at this side's address; port 0 takes a free one."""
        made = self.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((self.address, port))
        made.listen()
        return made

    def connect(self, address: tuple[str, int], timeout: float | None = None) -> Socket:
        """A TCP connection from this side, with an IPv4 address and a port at the other end."""
        made = self.socket()
        made.settimeout(timeout)
        made.connect(address)
        return made

    def popen(
        self,
        args: Sequence[str | os.PathLike[str]],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        stdin: IO[Any] | int | None = subprocess.DEVNULL,
        stdout: IO[Any] | int | None = None,
        stderr: IO[Any] | int | None = None,
    ) -> Process:
        """Starts a program on this side. $TACIT_PEER is the address of the other one."""
        words = [os.fspath(word) for word in args]
        asked = {"do": "start", "args": words, "cwd": os.fspath(cwd or os.getcwd()), "env": dict(os.environ if env is None else env)}
        with open(os.devnull, "r+b") as null:
            usual = (0, 1, 2)
            streams = [_descriptor(stream, null, own) for stream, own in zip((stdin, stdout, stderr), usual)]
            connection, answer, _ = self._ask(asked, tuple(streams))
        if "error" in answer:
            connection.close()
            raise OSError(*answer["error"])
        return Process(connection, words)

    def run(
        self,
        args: Sequence[str | os.PathLike[str]],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        check: bool = False,
    ) -> subprocess.CompletedProcess[bytes]:
        """Runs a program on this side and keeps its output, as subprocess.run does with capture_output."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = self.popen(args, cwd=cwd, env=env, stdout=out, stderr=err)
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
            for file in (out, err):
                file.seek(0)
            done = subprocess.CompletedProcess(process.args, code, out.read(), err.read())
        if check:
            done.check_returncode()
        return done


def _descriptor(stream: IO[Any] | int | None, null: IO[Any], usual: int) -> int:
    if stream is None:
        return usual
    if stream == subprocess.DEVNULL:
        return null.fileno()
    return stream if isinstance(stream, int) else stream.fileno()


class Hop:
    """A live hop of `tacit shell`, with `arguments`, between a client and a server."""

    def __init__(self, program: str, arguments: list[str]) -> None:
        self._room = Path(tempfile.mkdtemp(prefix="tacit-"))
        self.client, self.server = (Side(str(self._room / name)) for name in ("client", "server"))
        agents = [[sys.executable, "-I", _side.__file__, side._path] for side in (self.server, self.client)]
        command = [program, "shell", *arguments, "--json", "--server", "--", *agents[0], "--", *agents[1]]
        self._log = (self._room / "log").open("w+b")
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._log)
        #: The report of `tacit shell --json`, once the hop is closed.
        self.report: dict[str, Any] | None = None
        try:
            for side in (self.server, self.client):
                self._wait_for(side)
        except BaseException:
            self._process.kill()
            self._tidy()
            raise

    @property
    def address(self) -> str:
        """The client's IPv4 address."""
        return self.client.address

    @property
    def peer(self) -> str:
        """The server's IPv4 address, as the client sees it."""
        return self.server.address

    def _wait_for(self, side: Side) -> None:
        began = time.monotonic()
        while True:
            if self._process.poll() is not None:
                raise HopError(f"tacit shell ended with {self._process.returncode}: {self._said()}")
            try:
                connection, side._addresses, _ = side._ask({"do": "addresses"})
                return connection.close()
            except HopError:
                if time.monotonic() - began > PATIENCE:
                    raise HopError(f"no hop after {PATIENCE:.0f} s: {self._said()}") from None
                time.sleep(0.01)

    def _said(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace").strip()

    def _tidy(self) -> None:
        self._process.wait()
        self._log.close()
        if self._process.stdout:
            self._process.stdout.close()
        shutil.rmtree(self._room, ignore_errors=True)

    def close(self) -> dict[str, Any]:
        """Ends the hop with everything in it, and gives its report: `valid`, `transfer`, `airtime` and the rest."""
        if self.report is None:
            try:
                self.client._ask({"do": "end"})[0].close()
            except HopError:
                # It has ended already; its report says more.
                pass
            written, _ = self._process.communicate()
            said = self._said()
            self._tidy()
            if not written:
                raise HopError(f"tacit shell ended with {self._process.returncode}: {said}")
            self.report = json.loads(written)
        return self.report
