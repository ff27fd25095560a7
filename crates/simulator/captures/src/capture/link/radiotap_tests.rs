//! Headers written by capture programs and drivers, and malformed ones.

use proptest::prelude::*;

use super::*;

/// A header with these present words and fields, and a correct length.
fn header(present: &[u32], fields: &[u8]) -> Vec<u8> {
    let len = 4 + 4 * present.len() + fields.len();
    let mut out = vec![0, 0];
    out.extend((len as u16).to_le_bytes());
    out.extend(present.iter().flat_map(|word| word.to_le_bytes()));
    out.extend(fields);
    out
}

fn mode(present: &[u32], fields: &[u8]) -> Option<Mode> {
    Radiotap::parse(&header(present, fields)).unwrap().mode
}

fn words(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn tlv(kind: u16, words: &[u32]) -> Vec<u8> {
    let mut out = [kind, 4 * words.len() as u16].map(u16::to_le_bytes).as_flattened().to_vec();
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    out
}

/// U-SIG with `width`, and EHT with MCS 13, two streams and GI 1.6, with the frame's user at `place` among three.
fn eht_tlvs(width: u32, place: usize) -> Vec<u8> {
    let mut eht = vec![4, 1 << 7, 0, 0, 0, 0, 0, 0, 0, 0];
    let others = 0x12 | 3 << 20;
    eht.extend([others; 3]);
    eht[10 + place] = 0x92 | 13 << 20 | 1 << 24;
    [tlv(33, &[2 | width << 15, 0, 0]), tlv(34, &eht)].concat()
}

#[test]
fn each_generation_says_its_mode_in_a_field_of_its_own() {
    use GuardInterval::{Ns400, Ns800, Ns1600, Ns3200};
    // MCS 15 (two streams), 40 MHz, short guard interval.
    assert_eq!(mode(&[1 << bit::MCS], &[7, 5, 15]), Mode::ht(7, 2, true, Ns400));
    assert_eq!(mode(&[1 << bit::MCS], &[3, 5, 15]), None, "the guard interval is not known");
    let vht = |bandwidth: u8, known: u8| [known, 0, 0, bandwidth, 0x92, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(mode(&[1 << bit::VHT], &vht(4, 0x44)), Mode::vht(9, 2, 80, Ns800));
    assert_eq!(mode(&[1 << bit::VHT], &vht(11, 0x44)), Mode::vht(9, 2, 160, Ns800));
    assert_eq!(mode(&[1 << bit::VHT], &vht(11, 0x04)), None);
    let he = |format: u16, width: u16| words(&[0x4020 | format, 2, 11 << 8, 0, width | 1 << 4, 2]);
    assert_eq!(mode(&[1 << bit::HE], &he(0, 3)), Mode::he(11, 2, 160, Ns1600));
    assert_eq!(mode(&[1 << bit::HE], &he(0, 8)), None, "484 tones of a channel");
    assert_eq!(mode(&[1 << bit::HE], &he(2, 3)), None, "for several users");
    let extended = words(&[0x4021, 2, 2 << 8, 0, 2 << 4, 1]);
    assert_eq!(mode(&[1 << bit::HE], &extended), Mode::he_extended_range(2, Ns3200));
    for place in 0..3 {
        assert_eq!(mode(&[1 << bit::TLVS], &eht_tlvs(4, place)), Mode::eht(13, 2, 320, Ns1600));
        assert_eq!(mode(&[1 << bit::TLVS], &eht_tlvs(2, place)), Mode::eht(13, 2, 80, Ns1600));
    }
    assert_eq!(mode(&[1 << bit::TLVS], &eht_tlvs(6, 0)), None, "a width to come");
    assert_eq!(mode(&[1 << bit::TLVS], &tlv(34, &[4; 11])), None, "U-SIG has the width");
    // 54 Mb/s at 5 GHz, 11 Mb/s at 2.4 GHz.
    let ofdm = [&[108, 0][..], &5_180_u16.to_le_bytes(), &0x0140_u16.to_le_bytes()].concat();
    assert_eq!(mode(&[1 << bit::RATE | 1 << bit::CHANNEL], &ofdm), Mode::ofdm(BitRate::from_mbps(54)));
    let cck = [&[22, 0][..], &2_437_u16.to_le_bytes(), &0x00a0_u16.to_le_bytes()].concat();
    let long = Mode::dsss(BitRate::from_mbps(11), Preamble::Long);
    assert_eq!(mode(&[1 << bit::RATE | 1 << bit::CHANNEL], &cck), long);
}

/// As written by Linux: a word per antenna, and the TLV bit in the last word.
#[test]
fn tlvs_come_behind_the_fields_of_every_antenna() {
    const ANTENNA: u32 = 1 << 5 | 1 << 11;
    let present = [
        1 << bit::FLAGS | 1 << bit::RADIOTAP_NAMESPACE | 1 << bit::MORE,
        ANTENNA | 1 << bit::MORE,
        ANTENNA | 1 << bit::TLVS,
    ];
    let header = header(&present, &[&[0x10, 0xc8, 0, 0xc9, 1, 0, 0, 0][..], &eht_tlvs(3, 0)].concat());
    let radiotap = Radiotap::parse(&header).unwrap();
    assert_eq!(radiotap.mode, Mode::eht(13, 2, 160, GuardInterval::Ns1600));
    assert!(radiotap.has_fcs() && !radiotap.has_bad_fcs());
}

#[test]
fn a_vendors_fields_are_skipped() {
    // OUI, kind, and 5 bytes; then the fields of the second word, which belong to the vendor, and those of the third.
    let present = [
        1 << bit::VENDOR_NAMESPACE | 1 << bit::MORE,
        0xff | 1 << bit::RADIOTAP_NAMESPACE | 1 << bit::MORE,
        1 << bit::MCS,
    ];
    let fields = [&[1, 2, 3, 0, 5, 0][..], &[9; 5], &[7, 0, 0]].concat();
    assert_eq!(mode(&present, &fields), Mode::ht(0, 1, false, GuardInterval::Ns800));
    let cut = [&[1, 2, 3, 0, 50, 0][..], &[9; 5], &[7, 0, 0]].concat();
    assert_eq!(mode(&present, &cut), None);
}

#[test]
fn a_field_that_is_cut_off_ends_what_is_read() {
    let whole =
        header(&[1 << bit::FLAGS | 1 << bit::TLVS], &[&[0x10, 0, 0, 0][..], &eht_tlvs(4, 0)].concat());
    for len in 0..whole.len() {
        let mut cut = whole[..len].to_vec();
        assert_eq!(Radiotap::parse(&cut), None, "shorter than its length");
        if len >= 8 {
            cut[2..4].copy_from_slice(&(len as u16).to_le_bytes());
            let radiotap = Radiotap::parse(&cut).unwrap();
            assert_eq!((radiotap.len, radiotap.has_fcs()), (len, len > 8));
            // The frame's user is the first of three.
            assert_eq!(radiotap.mode.is_some(), len >= whole.len(), "{len}");
        }
    }
    // Present words without an end.
    assert_eq!(Radiotap::parse(&header(&[1 << bit::MORE; 3], &[])), None);
}

proptest! {
    #[test]
    fn arbitrary_headers_do_no_harm(
        present in prop::collection::vec(any::<u32>(), 1..4),
        fields in prop::collection::vec(any::<u8>(), 0..200),
        len in any::<u16>(),
    ) {
        let mut bytes = header(&present, &fields);
        Radiotap::parse(&bytes);
        bytes[2..4].copy_from_slice(&len.to_le_bytes());
        Radiotap::parse(&bytes);
    }

    /// Arbitrary modes in a header, valid or not.
    #[test]
    fn arbitrary_modes_do_no_harm(field in prop::collection::vec(any::<u8>(), 12), users in any::<[u32; 4]>()) {
        let known = [&[0x7f][..], &field[1..3]].concat();
        mode(&[1 << bit::MCS], &known);
        mode(&[1 << bit::VHT], &[&[0xff, 0][..], &field[2..]].concat());
        mode(&[1 << bit::HE], &[&[field[0] | 0x20, 0x40, 2, 0][..], &field[4..]].concat());
        let eht = [&[4, users[0], 0, 0, 0, 0, 0, 0, 0, 0][..], &users.map(|user| user | 0x12)].concat();
        mode(&[1 << bit::TLVS], &[tlv(33, &[users[1] | 2, 0, 0]), tlv(34, &eht)].concat());
    }
}
