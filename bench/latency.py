#!/usr/bin/env python3
"""Round trips and pages through TCP connections that programs carry; bench/latency.sh starts the programs.

usage: latency.py serve ADDRESS PORT
       latency.py ask WAY=ADDRESS:PORT... [--rounds N] [--requests N]

A request is a length in four bytes and that many bytes, which the server sends back. A page is 102 objects of 30 kB on six
connections, each asked for when the one before it on its connection has arrived. `ask` prints a line of JSON per round, way and
kind, in turns of the ways.
"""

import argparse
import json
import socket
import struct
import sys
import threading
import time

SIZES = [1, 1_000, 20_000]
OBJECT, OBJECTS, CONNECTIONS = 30_000, 102, 6


def exactly(tcp, count):
    """Reads `count` bytes; None where the peer has ended."""
    got = bytearray()
    while len(got) < count:
        piece = tcp.recv(min(count - len(got), 1 << 16))
        if not piece:
            return None
        got += piece
    return bytes(got)


def answer(tcp):
    """Serves one connection: a length with the highest bit asks for an object, any other is an echo."""
    tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    body = b"y" * OBJECT
    try:
        while head := exactly(tcp, 4):
            (length,) = struct.unpack("!I", head)
            if length >> 31:
                tcp.sendall(body)
            else:
                tcp.sendall(exactly(tcp, length) or b"")
    except OSError:
        pass


def serve(address, port):
    listener = socket.create_server((address, port), backlog=64)
    print("ready", flush=True)
    while True:
        tcp, _ = listener.accept()
        threading.Thread(target=answer, args=(tcp,), daemon=True).start()


def connected(place):
    tcp = socket.create_connection(place)
    tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    tcp.settimeout(30)
    return tcp


def echoes(place, size, requests):
    """Milliseconds of each round trip; the first ten do not count."""
    times, message = [], struct.pack("!I", size) + b"x" * size
    with connected(place) as tcp:
        for number in range(requests + 10):
            begun = time.perf_counter()
            tcp.sendall(message)
            if exactly(tcp, size) is None:
                sys.exit(f"latency.py: {place} ended a connection")
            if number >= 10:
                times.append((time.perf_counter() - begun) * 1e3)
    return times


def page(place):
    """Milliseconds that a page takes, its connections included."""

    def some():
        with connected(place) as tcp:
            for _ in range(OBJECTS // CONNECTIONS):
                tcp.sendall(struct.pack("!I", 1 << 31))
                exactly(tcp, OBJECT)

    begun = time.perf_counter()
    threads = [threading.Thread(target=some) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (time.perf_counter() - begun) * 1e3


def ask(ways, rounds, requests):
    for number in range(rounds):
        for size in SIZES:
            for way, place in ways.items():
                tell(number, way, f"{size} B", echoes(place, size, requests))
        for way, place in ways.items():
            tell(number, way, "page", [page(place) for _ in range(10)])


def tell(number, way, kind, times):
    times.sort()
    p50, p99 = times[len(times) // 2], times[min(len(times) - 1, len(times) * 99 // 100)]
    print(json.dumps({"round": number, "way": way, "kind": kind, "p50_ms": round(p50, 4), "p99_ms": round(p99, 4)}), flush=True)


def main():
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2], int(sys.argv[3]))
    parser = argparse.ArgumentParser()
    parser.add_argument("ask")
    parser.add_argument("ways", nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=500)
    arguments = parser.parse_args()
    ways = {}
    for way in arguments.ways:
        name, _, place = way.partition("=")
        address, _, port = place.rpartition(":")
        ways[name] = (address, int(port))
    ask(ways, arguments.rounds, arguments.requests)


main()
