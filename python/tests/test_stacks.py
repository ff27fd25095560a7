"""Random stacks of headers around TCP: the audit reads packets that scapy writes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import tacit

scapy = pytest.importorskip("scapy.all", reason="SKIPPED: no scapy, which writes the stacks")
from scapy.contrib.geneve import GENEVE  # noqa: E402
from scapy.contrib.gtp import GTP_U_Header  # noqa: E402
from scapy.contrib.mpls import MPLS  # noqa: E402
from scapy.layers.ppp import PPPoE  # noqa: E402
from scapy.layers.vxlan import VXLAN  # noqa: E402

STACKS = 10_000


def tcp(draw: random.Random, number: int) -> tuple[scapy.Packet, bool]:
    """A segment of a flow of its own, and whether it has data."""
    has_data = draw.random() < 0.5
    payload = b"x" * draw.randrange(2, 400) if has_data else b""
    ports = {"sport": 1024 + number % 60_000, "dport": 1 + number // 60_000}
    options = draw.choice([[], [("NOP", None), ("NOP", None), ("Timestamp", (number, 1))]])
    return scapy.TCP(flags="A", seq=1, ack=1, options=options, **ports) / payload, has_data


def ip(draw: random.Random, inside: scapy.Packet) -> scapy.Packet:
    if draw.random() < 0.3:
        return scapy.IPv6(src="fd00::1", dst="fd00::2") / inside
    return scapy.IP(src="10.0.0.1", dst="10.0.0.2", id=draw.randrange(1 << 16)) / inside


def ethernet(draw: random.Random, inside: scapy.Packet) -> scapy.Packet:
    """A frame around an IP packet, with tags, labels or a PPPoE session."""
    frame = scapy.Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    kind = draw.randrange(5)
    if kind == 1:
        frame = frame / scapy.Dot1Q(vlan=draw.randrange(4096))
    elif kind == 2:
        frame = frame / scapy.Dot1AD(vlan=5) / scapy.Dot1Q(vlan=6)
    elif kind == 3:
        labels = draw.randrange(1, 4)
        frame.type = 0x8847
        for label in range(labels):
            frame = frame / MPLS(label=label + 16, s=int(label == labels - 1), ttl=64)
    elif kind == 4:
        protocol = 0x0057 if inside.haslayer(scapy.IPv6) and isinstance(inside, scapy.IPv6) else 0x0021
        compressed = draw.random() < 0.5
        ppp = bytes([protocol]) if compressed else protocol.to_bytes(2, "big")
        return frame / PPPoE(sessionid=1) / scapy.Raw(ppp + bytes(inside))
    return frame / inside


def tunnel(draw: random.Random, inside: scapy.Packet) -> scapy.Packet:
    """An IP packet with another in it."""
    kind = draw.randrange(6)
    number = 0x86DD if isinstance(inside, scapy.IPv6) else 0x0800
    if kind == 0:
        return ip(draw, inside)
    if kind == 1:
        key = {"key_present": 1, "key": 7} if draw.random() < 0.5 else {}
        return ip(draw, scapy.GRE(proto=number, **key) / inside)
    if kind == 2:
        return ip(draw, scapy.GRE(proto=0x6558) / ethernet(draw, inside))
    if kind == 3:
        return ip(draw, scapy.UDP(sport=50_000, dport=4789) / VXLAN(vni=3, flags=8) / ethernet(draw, inside))
    if kind == 4:
        return ip(draw, scapy.UDP(sport=50_000, dport=6081) / GENEVE(proto=0x6558) / ethernet(draw, inside))
    return ip(draw, scapy.UDP(sport=2152, dport=2152) / GTP_U_Header(teid=9) / inside)


def test_every_stack_is_read_to_its_innermost_segment(tmp_path: Path) -> None:
    draw = random.Random(32)
    frames, data = [], 0
    for number in range(STACKS):
        segment, has_data = tcp(draw, number)
        packet = ip(draw, segment)
        for _ in range(draw.randrange(4)):
            packet = tunnel(draw, packet)
        data += has_data
        frames.append(bytes(ethernet(draw, packet)))
    path = tmp_path / "stacks.pcap"
    with scapy.RawPcapWriter(str(path), linktype=1) as writer:
        writer.write_header(None)
        for number, frame in enumerate(frames):
            writer.write_packet(frame, sec=number // 100, usec=number % 100 * 10_000)
    audit = tacit.audit(path, phy="802.11n", rate="150Mbps").data
    told = {"skipped": audit["skipped"], "not_tcp": audit["not_tcp"], "tunnels": audit["tunnels"]}
    assert (audit["packets"], audit["tcp_packets"]) == (STACKS, STACKS), told
    assert (audit["total"]["data_packets"], audit["total"]["ack_packets"]) == (data, STACKS - data), told
