//! TXOPs whose frames reserve all of them: multiple protection.

use super::*;

/// Voice in bursts of 1504 us with multiple protection; two stations may be `hidden` from each other.
fn protecting(hidden: bool) -> BssConfig {
    let mut c = bursting(AccessCategory::Voice);
    c.bursts = Bursts::MultipleProtection;
    c.stations = vec![c.stations[0].clone(); 4];
    c.hidden = if hidden { vec![(StationId(3), StationId(4))] } else { Vec::new() };
    c
}

/// Each frame of a burst has the rest of the TXOP in its Duration field (802.11-2020 clause 9.2.5.2), and a CF-End
/// returns what is left (clause 10.23.2.10).
#[test]
fn multiple_protection_reserves_the_txop_and_a_cf_end_returns_the_rest() {
    for hidden in [false, true] {
        let mut h = Harness::new(protecting(hidden));
        h.send_in(AccessCategory::Voice, ONE, 2, 1500);
        assert!(h.step());
        h.send(TWO, AP, 1, 1500);
        h.run();
        assert_eq!(h.story(), "ap:D1 1:A ap:D1 1:A ap:end 2:D1 ap:A", "{hidden}");
        assert_eq!(h.gaps_us()[..4], [16; 4], "{hidden}");
        let until = h.frames[0].at + us(1_504);
        for frame in &h.frames[..4] {
            assert_eq!(end(frame) + frame.reserves, until, "{frame:?}");
        }
        let waited = h.frames[5].at - end(&h.frames[4]);
        assert!((us(43)..=us(43 + 15 * 9)).contains(&waited), "{waited}, {hidden}");
    }
}

/// 8 exchanges leave 80 us of the TXOP; after another of 36 + 7.2 + 16 + 28 us, rounded up, nothing fits, and no CF-End.
/// Where all stations hear each other, bystanders wait in whole slots: a part of a slot would separate them from the holder.
#[test]
fn where_no_cf_end_fits_bystanders_wait_for_the_end_of_the_txop() {
    for (hidden, seed) in
        [false, true].into_iter().flat_map(|hidden| (1..=20).map(move |seed| (hidden, seed)))
    {
        let mut h = rest_of_a_txop(hidden, seed);
        h.send(TWO, AP, 1, 1500);
        h.run();
        let until = h.frames[0].at + us(1_504);
        let after_all = &h.frames[18];
        assert_eq!((after_all.transmitter, h.bss.counters(AP).cf_ends), (TWO, 0), "{}", h.story());
        let left = until - end(&h.frames[17]);
        assert!(left > Duration::ZERO && left < us(16 + 28), "{left}");
        assert!(after_all.at + us(9) / 2 >= until + us(43), "{hidden}, seed {seed}");
        let slots = after_all.at - end(&h.frames[17]) - us(43);
        assert!(hidden || slots.as_nanos().is_multiple_of(9_000), "{slots}, seed {seed}");
    }
}

/// A TXOP of voice in which no time is left for a CF-End, at its first frame.
fn rest_of_a_txop(hidden: bool, seed: u64) -> Harness {
    let mut h = Harness::seeded(protecting(hidden), seed);
    h.send_in(AccessCategory::Voice, ONE, 8, 1400);
    h.send_in(AccessCategory::Voice, ONE, 1, 52);
    assert!(h.step());
    h
}

/// A station has one NAV, and frames addressed to it do not set it.
#[test]
fn the_rest_of_a_txop_keeps_no_function_of_its_stations() {
    for hidden in [false, true] {
        let waits = (1..=60).map(|seed| {
            let mut h = rest_of_a_txop(hidden, seed);
            h.send_in(AccessCategory::BestEffort, ONE, 1, 1500);
            h.run();
            h.frames[18].at - end(&h.frames[17])
        });
        assert_eq!(waits.min(), Some(us(43)), "{hidden}");
    }
}

/// The frame of the holder is not answered, and not repeated: bystanders keep what it reserved.
#[test]
fn a_failure_leaves_the_reservation_to_bystanders() {
    for hidden in [false, true] {
        for (bursts, reserved) in [(Bursts::MultipleProtection, us(1_504)), (Bursts::WithinLimit, us(164))] {
            let mut c = BssConfig { bursts, retry_limit: 0, ..protecting(hidden) };
            c.stations[0].downlink_loss = scripted([0]);
            let mut h = Harness::new(c);
            h.send_in(AccessCategory::Voice, ONE, 1, 1500);
            assert!(h.step());
            h.send(TWO, AP, 1, 1500);
            h.run();
            assert_eq!(h.story(), "ap:D1! 2:D1 ap:A", "{hidden}");
            let waited = h.frames[1].at - (h.frames[0].at + reserved);
            assert!((us(43)..=us(43 + 15 * 9)).contains(&waited), "{waited}, {bursts:?}, {hidden}");
        }
    }
}
