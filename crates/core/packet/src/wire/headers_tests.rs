use etherparse::{PacketBuilder, TcpOptionElement};

use super::*;

/// A segment of 100 bytes with timestamps and a SACK block.
fn packet(v6: bool) -> Vec<u8> {
    let ip = if v6 {
        PacketBuilder::ipv6([1; 16], [2; 16], 64)
    } else {
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
    };
    let sack = TcpOptionElement::SelectiveAcknowledgement((1, 2), [None; 3]);
    let options = [TcpOptionElement::Noop, TcpOptionElement::Timestamp(1, 2), TcpOptionElement::Noop, sack];
    let mut bytes = Vec::new();
    let tcp = ip.tcp(443, 50_000, 7, 1024).ack(99).options(&options).unwrap();
    tcp.write(&mut bytes, &[0; 100]).unwrap();
    bytes
}

fn tcp(headers: &Headers) -> Tcp {
    let Transport::Tcp(tcp) = headers.transport else { panic!("{headers:?}") };
    tcp
}

#[test]
fn fields_of_both_versions() {
    for (v6, header_len) in [(false, 20), (true, 40)] {
        let bytes = packet(v6);
        let headers = Headers::read(&bytes).unwrap();
        assert_eq!((headers.header_len, headers.stated_len), (header_len, Some(bytes.len() as u32)));
        assert_eq!(headers.ends().map(|end| end.port()), [443, 50_000]);
        assert_eq!(headers.fragment, Fragment::Whole);
        let tcp = tcp(&headers);
        assert_eq!((tcp.seq, tcp.ack, tcp.window, tcp.header_len), (7, 99, 1024, 44));
        assert_eq!((tcp.flags, tcp.reserved), (Flags::ACK, 0));
        let kinds: Vec<_> = tcp.options().flatten().map(|option| (option.kind, option.len)).collect();
        assert_eq!(kinds, [(8, 8), (5, 8)]);
    }
}

#[test]
fn truncation_does_not_hide_the_headers_before_it() {
    for (v6, ip) in [(false, 20), (true, 40)] {
        let bytes = packet(v6);
        for len in 0..bytes.len() {
            let headers = Headers::read(&bytes[..len]);
            assert_eq!(headers.is_some(), len >= ip, "{len} bytes");
            let Some(headers) = headers else { continue };
            assert_eq!(headers.stated_len, Some(bytes.len() as u32), "lengths are those of the packet");
            assert_eq!(matches!(headers.transport, Transport::Tcp(_)), len >= ip + 20, "{len} bytes");
            if len < ip + 20 {
                continue;
            }
            let tcp = tcp(&headers);
            assert_eq!(tcp.header_len, 44);
            let there = tcp.options().flatten().map(|option| option.value.len()).sum::<usize>();
            // One byte of padding and two for kind and length precede each value.
            let first = len.saturating_sub(ip + 23).min(8);
            let second = len.saturating_sub(ip + 34).min(8);
            assert_eq!(there, first + second, "{len} bytes");
        }
    }
}

#[test]
fn options_behind_unknown_ones_are_read() {
    let mut bytes = packet(false);
    // A Multipath TCP option in place of the timestamps.
    bytes[41] = 30;
    let headers = Headers::read(&bytes).unwrap();
    let kinds: Vec<_> = tcp(&headers).options().flatten().map(|option| option.kind).collect();
    assert_eq!(kinds, [30, 5]);
    // No option can be one byte long.
    bytes[42] = 1;
    let headers = Headers::read(&bytes).unwrap();
    assert_eq!(tcp(&headers).options().collect::<Vec<_>>(), [Err(BadOption)]);
}

#[test]
fn a_length_field_of_zero_says_nothing() {
    for (v6, field) in [(false, 2..4), (true, 4..6)] {
        let mut bytes = packet(v6);
        bytes[field].fill(0);
        let headers = Headers::read(&bytes).unwrap();
        assert_eq!(headers.stated_len, None);
        assert_eq!(tcp(&headers).seq, 7);
    }
}

#[test]
fn extension_headers_and_fragments() {
    let segment = &packet(true)[40..];
    let with = |next: u8, extension: &[u8]| {
        let mut bytes = packet(true)[..40].to_vec();
        bytes[6] = next;
        bytes[4..6].copy_from_slice(&((extension.len() + segment.len()) as u16).to_be_bytes());
        bytes.extend_from_slice(extension);
        bytes.extend_from_slice(segment);
        Headers::read(&bytes).unwrap()
    };
    let hops = with(0, &[60, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!((hops.header_len, tcp(&hops).seq), (56, 7));
    let authenticated = with(51, &[6, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!((authenticated.header_len, tcp(&authenticated).seq), (64, 7));
    let first = with(44, &[6, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!((first.fragment, tcp(&first).seq), (Fragment::First, 7));
    let later = with(44, &[6, 0, 0, 8, 0, 0, 0, 0]);
    assert_eq!(later.fragment, Fragment::Later);
    assert!(matches!(later.transport, Transport::Other));
    assert!(matches!(with(58, &[]).transport, Transport::Other));
    let mut v4 = packet(false);
    v4[7] = 1;
    assert_eq!(Headers::read(&v4).unwrap().fragment, Fragment::Later);
    v4[6..8].copy_from_slice(&[0x20, 0]);
    assert_eq!(Headers::read(&v4).unwrap().fragment, Fragment::First);
}

proptest::proptest! {
    /// Invariants for any bytes that claim to be an IP packet.
    #[test]
    fn any_bytes_are_read_or_not(
        version in proptest::sample::select(&[0x45_u8, 0x46, 0x4f, 0x60]),
        mut bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 1..200),
        next in proptest::sample::select(&[0_u8, 6, 17, 43, 44, 51, 60]),
    ) {
        bytes[0] = version;
        if let Some(protocol) = bytes.get_mut(if version == 0x60 { 6 } else { 9 }) {
            *protocol = next;
        }
        if let Some(headers) = Headers::read(&bytes) {
            proptest::prop_assert!(headers.header_len as usize <= bytes.len());
            if let Transport::Tcp(tcp) = headers.transport {
                proptest::prop_assert!((20..=60).contains(&tcp.header_len));
                proptest::prop_assert!(tcp.options().count() <= 20);
            }
        }
    }
}

#[test]
fn headers_that_cannot_be_are_not_read() {
    assert!(Headers::read(&[]).is_none());
    assert!(Headers::read(b"whatever").is_none());
    let mut bytes = packet(false);
    bytes[32] = 0x40;
    let headers = Headers::read(&bytes).unwrap();
    assert!(matches!(headers.transport, Transport::Unreadable), "a data offset of 4 words");
}
