"""ROHC-TCP header compression (RFC 6846): packets, and captures.

>>> compressor, decompressor = Compressor(), Decompressor()
>>> packet = bytes.fromhex(
...     "4500002800004000400626ce0a0000010a000002"  # IPv4, 10.0.0.1 to 10.0.0.2
...     "1388005000000001000000015010ffff00000000"  # TCP, a pure ACK
... )
>>> back, feedback = decompressor.decompress(compressor.compress(packet))
>>> back == packet
True
"""

from __future__ import annotations

from os import fspath

from . import _native
from ._native import Compressor, Decompressor
from ._results import Result
from ._scenario import AnyPath

__all__ = ["Compressor", "Decompressor", "compare", "compress", "decompress", "stats"]


def stats(capture: AnyPath, codec: str = "strict") -> Result:
    """Runs a capture through a codec and back, checks every byte, counts and measures.

    ``codec``: ``strict`` (RFC 6846), ``hack`` (TCP/HACK, ACK by ACK) or ``hack-batch`` (the ACKs of a frame as one run).
    """
    return Result(_native.rohc_stats(fspath(capture), codec))


def compress(capture: AnyPath, out: AnyPath, *, repeat: int = 2, cid: str = "small") -> Result:
    """Compresses the TCP packets of a capture into a file: each ROHC packet behind its length, 16 bits, little-endian."""
    return Result(_native.rohc_compress(fspath(capture), fspath(out), repeat, cid))


def decompress(rohc: AnyPath, out: AnyPath, *, cid: str = "small") -> Result:
    """Decompresses such a file into a capture: pcap, raw IP."""
    return Result(_native.rohc_decompress(fspath(rohc), fspath(out), cid))


def compare(capture: AnyPath, other: AnyPath, *, repeat: int = 2, cid: str = "small") -> Result:
    """Sets our packets beside those that another implementation made of the same capture, and decompresses theirs."""
    return Result(_native.rohc_compare(fspath(capture), fspath(other), repeat, cid))
