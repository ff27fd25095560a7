"""One side of a hop: hands sockets of its network to the test, and starts programs there.

`tacit shell` runs this file by its path. Each request comes over a connection of its own to a Unix socket.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from typing import Any


def send(connection: socket.socket, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> None:
    """Sends a length of four bytes and a message of JSON, with descriptors."""
    text = json.dumps(message).encode()
    # The descriptors go with the length.
    socket.send_fds(connection, [struct.pack("!I", len(text))], list(descriptors))
    connection.sendall(text)


def exactly(connection: socket.socket, length: int) -> bytes:
    got = b""
    while len(got) < length:
        more = connection.recv(length - len(got))
        if not more:
            raise EOFError
        got += more
    return got


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The next message and its descriptors; EOFError where there is none."""
    head, descriptors, _, _ = socket.recv_fds(connection, 4, 3)
    head += exactly(connection, 4 - len(head)) if head else b""
    if not head:
        raise EOFError
    message: dict[str, Any] = json.loads(exactly(connection, struct.unpack("!I", head)[0]))
    return message, list(descriptors)


def start(connection: socket.socket, asked: dict[str, Any], descriptors: list[int]) -> None:
    """Runs a program until it ends, or until nobody waits for it any more."""
    try:
        process = subprocess.Popen(
            asked["args"],
            cwd=asked["cwd"],
            env={**asked["env"], **{name: value for name, value in os.environ.items() if name.startswith("TACIT_")}},
            stdin=descriptors[0],
            stdout=descriptors[1],
            stderr=descriptors[2],
            start_new_session=True,
        )
    except OSError as error:
        return send(connection, {"error": [error.errno, error.strerror, error.filename]})
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    send(connection, {})

    def obey() -> None:
        try:
            while True:
                os.killpg(process.pid, receive(connection)[0]["signal"])
        except (EOFError, OSError):
            # The test has gone, or the program.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)

    threading.Thread(target=obey, daemon=True).start()
    code = process.wait()
    try:
        send(connection, {"returncode": code})
    except OSError:
        pass


def serve(connection: socket.socket) -> None:
    with connection:
        asked, descriptors = receive(connection)
        if asked["do"] == "start":
            start(connection, asked, descriptors)
        elif asked["do"] == "socket":
            with socket.socket(asked["family"], asked["type"], asked["proto"]) as made:
                send(connection, {}, (made.fileno(),))
        elif asked["do"] == "addresses":
            names = ("TACIT_ADDRESS", "TACIT_ADDRESS6", "TACIT_PEER", "TACIT_PEER6")
            send(connection, {name: os.environ.get(name) for name in names})
        else:
            send(connection, {})
            os._exit(0)


def main(path: str) -> None:
    # `tacit shell` starts the other side when this one has a bound socket.
    sign = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sign.bind(("127.0.0.1", 0))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1])
