//! Clients whose own signal deafens them on other links: known answers, and frames by hand.

use crate::emlsr::{Feedback, PPDU, tcp};
use crate::multi_link::{Script, W80, W160, full, links, udp};
use tacit_link::wifi::air::{AirFrame, Frame, Outcome};
use tacit_link::wifi::{
    BlockAckScope, BssConfig, ClientLinks, LinkId, LinkMode, LinkSet, StationId, WindowShare,
};
use tacit_packet::units::{Duration, Instant};

const AP: StationId = StationId::AP;
const ONE: StationId = StationId(1);

fn send_or_receive(widths: [(u16, u8, u8); 2]) -> BssConfig {
    let mut config = links(&widths, 1024, WindowShare::Greedy, BlockAckScope::OwnLink);
    let mode = LinkMode::SendOrReceive { medium_sync: Duration::from_micros(5_472) };
    config.multi_link.as_mut().unwrap().clients = vec![ClientLinks { links: LinkSet::ALL, mode }];
    config
}

/// Both links begin and end together: an access is the larger of two backoffs, 10.16 slots in the mean.
#[test]
fn links_wait_for_each_other() {
    let (found, _) = udp(send_or_receive([W80, W80]));
    assert!((found / 1306.4 - 1.0).abs() < 0.005, "{found:.1} Mb/s");
}

/// One aggregate of 316 ACKs for both PPDUs blocks both links: 388 us, SIFS, and a Block Ack of 72. Here the client begins on the link whose
/// backoff ends first, 4.84 slots in the mean, and the access point, whose packets come with the ACKs, on one with a backoff of 7.5 and one
/// without.
#[test]
fn acks_on_one_link_block_both() {
    let cycle = (43.0 + 9.0 * 7.5) + 5474.4 + 16.0 + 72.0 + (43.0 + 9.0 * 4.84) + 388.0 + 16.0 + 72.0;
    let expected = f64::from(2 * PPDU) * 1448.0 * 8.0 / cycle;
    let found = tcp(send_or_receive([W80, W80]), Feedback::Acks, 2 * PPDU);
    assert!((found / expected - 1.0).abs() < 0.005, "{found:.1} for {expected:.1} Mb/s");
}

/// Start and end of each data PPDU, in order.
fn ppdus(script: &Script, from: StationId) -> Vec<(LinkId, Instant, Instant)> {
    let is_data =
        |frame: &&AirFrame<_>| frame.transmitter == from && matches!(frame.frame, Frame::Data { .. });
    let span = |frame: &AirFrame<_>| (frame.link, frame.at, frame.at + frame.duration);
    let mut all: Vec<_> = script.frames.iter().filter(is_data).map(span).collect();
    all.sort_by_key(|(link, at, _)| (*at, *link));
    all.dedup();
    all
}

/// A fast and a slow link: their PPDUs start and end together, the last ones too, which need not be equally full.
#[test]
fn ppdus_of_both_links_end_together() {
    let mut script = Script::new(send_or_receive([W80, W160]));
    script.send(AP, ONE, full(0..3000));
    script.run();
    let all = ppdus(&script, AP);
    assert!(all.len() > 4, "{all:?}");
    for (link, start, end) in &all {
        for (other, from, until) in all.iter().filter(|(other, ..)| other != link) {
            let meet = start < until && from < end;
            assert!(!meet || (start, end) == (from, until), "{link:?} and {other:?}: {all:?}");
        }
    }
    let delivered: Vec<u32> = script.delivered.iter().map(|(_, number)| *number).collect();
    assert_eq!(delivered, (0..3000).collect::<Vec<_>>());
}

/// Nothing meets what the client sends: the access point waits, and the client waits for the access point.
#[test]
fn nothing_is_sent_to_a_client_that_sends() {
    let mut script = Script::new(send_or_receive([W80, W80]));
    script.send(AP, ONE, full(0..1500));
    script.send(ONE, AP, full(0..1500));
    script.run();
    let (down, up) = (ppdus(&script, AP), ppdus(&script, ONE));
    assert!(down.len() > 2 && up.len() > 2);
    let collided =
        |at: Instant| script.frames.iter().any(|frame| frame.at == at && frame.outcome == Outcome::Collided);
    for (_, start, end) in up.iter().filter(|(_, at, _)| !collided(*at)) {
        let meets = down.iter().find(|(_, from, until)| start < until && from < end);
        assert_eq!(meets, None, "{start} to {end}");
    }
    assert_eq!(script.delivered.len(), 3000);
}

/// Little waits: each link takes its part by rate, so that both PPDUs are short. All on one link would last twice as long.
#[test]
fn what_waits_is_divided_by_rate() {
    let mut script = Script::new(send_or_receive([W80, W80]));
    script.send(AP, ONE, full(0..100));
    script.run();
    let mpdus = |link| {
        let is_data =
            |frame: &&AirFrame<_>| frame.link == LinkId(link) && matches!(frame.frame, Frame::Data { .. });
        script.frames.iter().filter(is_data).count()
    };
    assert_eq!([0, 1].map(mpdus), [50, 50], "{}", script.story());
}
