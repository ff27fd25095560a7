"""Captures and the ROHC codec."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import SHORT

import tacit
from tacit import rohc


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("captures") / "air.pcapng"
    tacit.run("wlan-11n-150", SHORT, pcap=path)
    return path


def test_a_run_s_capture_is_audited(capture: Path) -> None:
    audit = tacit.audit(capture, phy="802.11n", rate="150Mbps")
    [flow] = audit.table("flows").rows()
    assert isinstance(flow["ack_packets"], int) and flow["ack_packets"] > 0
    assert audit.table("schemes")["scheme"][0] == "as captured"
    with pytest.raises(tacit.TacitError, match="nothing.pcap"):
        tacit.audit(capture.with_name("nothing.pcap"))


def test_captures_go_through_the_codec_and_back(capture: Path, tmp_path: Path) -> None:
    assert rohc.stats(capture).data["wrong"] == 0
    rohc.compress(capture, tmp_path / "acks.rohc")
    back = rohc.decompress(tmp_path / "acks.rohc", tmp_path / "back.pcap")
    assert back.data["packets"] > 0
    assert rohc.compare(capture, tmp_path / "acks.rohc").data["wrong"] == 0
    with pytest.raises(tacit.InputError, match="cid: unknown CIDs"):
        rohc.compress(capture, tmp_path / "no.rohc", cid="medium")


def pure_ack(number: int) -> bytes:
    """An IPv4 packet with a TCP ACK that moves by two segments each."""
    ip = bytes.fromhex("45000028") + number.to_bytes(2, "big") + bytes.fromhex("40004006") + b"\0\0" + bytes([10, 0, 0, 1, 10, 0, 0, 2])
    total = sum(int.from_bytes(ip[at : at + 2], "big") for at in range(0, 20, 2))
    checksum = 0xFFFF - (total % 0xFFFF or 0xFFFF)
    ip = ip[:10] + checksum.to_bytes(2, "big") + ip[12:]
    tcp = bytes.fromhex("13880050") + (1).to_bytes(4, "big") + (2896 * number).to_bytes(4, "big")
    return ip + tcp + bytes.fromhex("5010ffffbeef0000")


def test_packets_shrink_and_come_back() -> None:
    compressor, decompressor = rohc.Compressor(), rohc.Decompressor()
    sizes = []
    for number in range(50):
        packet = pure_ack(number)
        small = compressor.compress(packet)
        back, feedback = decompressor.decompress(small)
        assert back == packet
        if feedback is not None:
            compressor.feedback(feedback)
        sizes.append(len(small))
    assert sizes[0] > 30 and max(sizes[10:]) <= 8


@pytest.mark.parametrize("hostile", [b"", b"\xff" * 40, bytes(70_000), b"\xfd\x06\x00"])
def test_hostile_bytes_are_refused(hostile: bytes) -> None:
    with pytest.raises(tacit.TacitError):
        rohc.Decompressor().decompress(hostile)
    with pytest.raises(tacit.TacitError):
        rohc.Compressor().compress(hostile)


def test_real_captures_of_others(shared: Path) -> None:
    capture = shared / "captures" / "veth_clean_v4.acks.pcap"
    assert tacit.audit(capture).data["total"]["ack_packets"] > 10_000
    assert rohc.stats(capture, "hack-batch").data["wrong"] == 0
