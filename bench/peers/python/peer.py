"""Moves data over aioquic, or over picoquic by aiopquic, as tacit-peers does over other stacks.

`peer.py STACK serve ADDRESS`, `peer.py STACK fetch ADDRESS --bytes N [--objects N] [--times N]` and `peer.py STACK version`, by the QUIC
performance protocol (draft-banks-quic-performance-00): a request is the length of its answer, in 8 bytes.
"""

import argparse
import asyncio
import datetime
import importlib
import importlib.metadata
import io
import json
import re
import ssl
import struct
import sys
import tempfile
import time

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

PROTOCOL = "perf"
NAME = "localhost"
PIECE_BYTES = 1 << 18
LIBRARIES = {"aioquic": "aioquic", "picoquic": "aiopquic"}
STACK = sys.argv[1] if len(sys.argv) > 1 else ""
if STACK not in LIBRARIES:
    sys.exit(f"usage: peer.py {'|'.join(LIBRARIES)} serve|fetch|version …")
LIBRARY = LIBRARIES[STACK]
QuicConnectionProtocol = importlib.import_module(f"{LIBRARY}.asyncio.protocol").QuicConnectionProtocol
connect = importlib.import_module(f"{LIBRARY}.asyncio.client").connect
serve = importlib.import_module(f"{LIBRARY}.asyncio.server").serve
QuicConfiguration = importlib.import_module(f"{LIBRARY}.quic.configuration").QuicConfiguration
events = importlib.import_module(f"{LIBRARY}.quic.events")


class Server(QuicConnectionProtocol):
    """Answers each stream with the bytes that it asks for."""

    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, **keywords)
        self.requests = {}

    def quic_event_received(self, event):
        if not isinstance(event, events.StreamDataReceived):
            return
        request = self.requests.get(event.stream_id, b"") + bytes(event.data)
        self.requests[event.stream_id] = request
        if event.end_stream and len(request) >= 8:
            (length,) = struct.unpack("!Q", request[:8])
            answer = asyncio.get_running_loop().create_task(self.answer(event.stream_id, length))
            # The loop itself keeps no task alive.
            self.requests[event.stream_id] = answer

    async def answer(self, stream, length):
        if STACK == "aioquic":
            self._quic.send_stream_data(stream, bytes(length), end_stream=True)
            self.transmit()
            return
        for begin in range(0, length, PIECE_BYTES):
            end = min(begin + PIECE_BYTES, length)
            await self._quic.send_stream_data_drained(stream, bytes(end - begin), end_stream=end == length)


class Client(QuicConnectionProtocol):
    """Counts the bytes of answers."""

    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, **keywords)
        self.answers = {}

    def get(self, length):
        """Asks for an object; the result has its length once all of it is here."""
        stream = self._quic.get_next_available_stream_id()
        answer = asyncio.get_running_loop().create_future()
        self.answers[stream] = [answer, 0]
        self._quic.send_stream_data(stream, struct.pack("!Q", length), end_stream=True)
        if STACK == "aioquic":
            self.transmit()
        return answer

    def quic_event_received(self, event):
        if isinstance(event, events.StreamDataReceived):
            answer = self.answers[event.stream_id]
            answer[1] += len(event.data)
            if event.end_stream:
                answer[0].set_result(answer[1])
        elif isinstance(event, events.ConnectionTerminated):
            for answer, _ in self.answers.values():
                if not answer.done():
                    answer.set_exception(ConnectionError("the connection ended"))


def certificate():
    """Files with a certificate and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=365))
    signed = builder.sign(key, hashes.SHA256())
    unencrypted = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    files = []
    for text in (signed.public_bytes(pem), key.private_bytes(pem, serialization.PrivateFormat.PKCS8, unencrypted)):
        file = tempfile.NamedTemporaryFile()
        file.write(text)
        file.flush()
        files.append(file)
    return files


def host_and_port(address):
    """Of `HOST:PORT`."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def configuration(is_client, congestion):
    """As the library's authors left it, except for what the command line names."""
    chosen = {"congestion_control_algorithm": congestion} if congestion else {}
    return QuicConfiguration(
        is_client=is_client, alpn_protocols=[PROTOCOL], verify_mode=ssl.CERT_NONE, server_name=NAME, **chosen
    )


async def run_server(arguments):
    own = configuration(False, arguments.congestion)
    chain, key = certificate()
    if STACK == "aioquic":
        own.load_cert_chain(chain.name, key.name)
    else:
        own.certificate_file, own.private_key_file = chain.name, key.name
    await serve(*host_and_port(arguments.address), configuration=own, create_protocol=Server)
    await asyncio.Event().wait()


async def transfer(arguments):
    host, port = host_and_port(arguments.address)
    own = configuration(True, arguments.congestion)
    async with connect(host, port, configuration=own, create_protocol=Client) as client:
        came = [await client.get(arguments.bytes)]
        came += await asyncio.gather(*[client.get(arguments.bytes) for _ in range(arguments.objects - 1)])
    if came != [arguments.bytes] * arguments.objects:
        raise ValueError(f"{came} of {arguments.bytes} bytes each came")


async def run_client(arguments):
    times = []
    for _ in range(arguments.times):
        began = time.monotonic()
        await transfer(arguments)
        times.append(time.monotonic() - began)
    moved = arguments.bytes * arguments.objects * arguments.times
    report = {"bytes": moved, "duration_s": sum(times), "times_s": times, "cpu_s": time.process_time()}
    print(json.dumps(report))


def version():
    """Of the library; picoquic's own as well."""
    own = importlib.metadata.version(LIBRARY)
    if STACK == "aioquic":
        return own
    described = io.StringIO()
    importlib.import_module("aiopquic.versions").print_versions(file=described)
    found = re.search(r"picoquic: +(\S+)", described.getvalue())
    return f"{found[1] if found else 'unknown'} (aiopquic {own})"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    jobs = parser.add_subparsers(dest="job", required=True)
    jobs.add_parser("version")
    server = jobs.add_parser("serve")
    client = jobs.add_parser("fetch")
    for end in (server, client):
        end.add_argument("address")
        end.add_argument("--congestion", help="the library's name for it")
    client.add_argument("--bytes", type=int, required=True)
    client.add_argument("--objects", type=int, default=1)
    client.add_argument("--times", type=int, default=1)
    arguments = parser.parse_args(sys.argv[2:])
    if arguments.job == "version":
        print(version())
    else:
        asyncio.run(run_server(arguments) if arguments.job == "serve" else run_client(arguments))


if __name__ == "__main__":
    main()
