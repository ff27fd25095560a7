//! Saturated links of a multi-link device that share one Block Ack window (802.11be clause 35.3), without losses and
//! collisions: an event script, independent of the simulator.

use std::collections::VecDeque;

use serde::Serialize;
use tacit_link::wifi::phy::{Standard, block_ack_len};
use tacit_link::wifi::{BlockAckScope, Emlsr, RadioReturn, WindowShare};
use tacit_packet::units::{Duration, Instant};
use tacit_scenario::InputError;
use tacit_scenario::table::{TextTable, count, number, percent};

use crate::{Airtime, Capacity, Feedback, Hop, Traffic, capacity};

/// Time that the script covers; its goodput is steady to 0.1 % then.
const COVERED: Duration = Duration::from_secs(2);

/// Goodput of several links, and for how much of the time the window stalled each.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharedWindow {
    /// Goodput in bits per second.
    pub goodput_bps: f64,
    /// Share of the time for which each link had won its access and found no room in the window.
    pub stalled: Vec<f64>,
}

/// A link in the script.
struct Link {
    hop: Hop,
    /// Most MPDUs that it takes.
    most: u32,
    /// When its backoff is over, if nothing is on the air.
    ready: Instant,
    /// Its PPDU: first number, MPDUs, start and end of the PPDU, end of the Block Ack.
    on_air: Option<(u64, u32, [Instant; 3])>,
    stalled: Duration,
    accesses: u64,
}

impl Link {
    /// AIFS and the next backoff. Backoffs take each number of slots equally often, so that links do not stay in phase.
    fn next_wait(&mut self) -> Duration {
        let windows = u64::from(self.hop.phy.cw_min) + 1;
        self.accesses += 1;
        self.hop.phy.aifs() + self.hop.phy.slot * (self.accesses * STRIDE % windows)
    }
}

/// Between backoffs, in slots; no divisor of a contention window.
const STRIDE: u64 = 7;

/// Goodput of `traffic` from one sender over `links`, whose Block Ack windows are equal. An access that the
/// window held back begins when the window moves.
pub fn shared_window(
    links: &[Hop],
    traffic: &Traffic,
    share: WindowShare,
    scope: BlockAckScope,
) -> SharedWindow {
    let window = links.iter().map(|hop| hop.block_ack_window).min().unwrap_or(1);
    let rates: u64 = links.iter().map(|hop| hop.data.rate().as_bps()).sum();
    let link = |hop: &Hop| {
        let Hop { data, .. } = *hop;
        let part = match share {
            WindowShare::Greedy => window,
            WindowShare::Proportional => {
                (u64::from(window) * data.rate().as_bps() / rates.max(1)).max(1) as u32
            }
        };
        let most = hop.mpdus_per_ppdu(traffic.packet).min(part);
        let ready = Instant::ZERO + hop.mean_acquisition();
        Link { hop: *hop, most, ready, on_air: None, stalled: Duration::ZERO, accesses: 0 }
    };
    let mut links: Vec<Link> = links.iter().map(link).collect();
    // Whether each number from `first` on is settled.
    let (mut first, mut settled) = (0_u64, VecDeque::<bool>::new());
    let end = Instant::ZERO + COVERED;
    let mut now = Instant::ZERO;
    while now < end {
        for link in &mut links {
            let room = u64::from(window) - settled.len() as u64;
            if link.on_air.is_some() || link.ready > now || room == 0 {
                continue;
            }
            let mpdus = link.most.min(room as u32);
            let ppdu_end = now + link.hop.data.ppdu_duration(link.hop.psdu_len(mpdus, traffic.packet));
            let answer = link.hop.control.ppdu_duration(block_ack_len(link.hop.block_ack_window));
            let answered = ppdu_end + link.hop.phy.sifs + answer;
            link.on_air = Some((first + settled.len() as u64, mpdus, [now, ppdu_end, answered]));
            link.stalled += now - link.ready;
            settled.extend((0..mpdus).map(|_| false));
        }
        let answers = links.iter().filter_map(|link| link.on_air.map(|(.., [.., answered])| answered));
        let accesses =
            links.iter().filter(|link| link.on_air.is_none() && link.ready > now).map(|link| link.ready);
        let Some(next) = answers.chain(accesses).min() else { break };
        now = next;
        let ended = |link: &Link| link.on_air.filter(|(.., [.., answered])| *answered <= now);
        // A shared Block Ack has what any link received until its PPDU ended.
        let known_until = links.iter().filter_map(ended).map(|(.., [_, ppdu_end, _])| ppdu_end).max();
        let mut settle = |number: u64, mpdus: u32| {
            for each in number..number + u64::from(mpdus) {
                if let Some(place) = each.checked_sub(first) {
                    settled[place as usize] = true;
                }
            }
        };
        for link in &mut links {
            let (Some((number, mpdus, [start, _, answered])), Some(until)) = (link.on_air, known_until)
            else {
                continue;
            };
            if answered <= now {
                settle(number, mpdus);
                link.on_air = None;
                link.ready = now + link.next_wait();
            } else if scope == BlockAckScope::Shared {
                let whole = |mpdus: &u32| {
                    let bytes = link.hop.psdu_len(*mpdus, traffic.packet);
                    start + link.hop.data.time_before(bytes) <= until
                };
                settle(number, (1..=mpdus).take_while(whole).last().unwrap_or(0));
            }
        }
        while settled.front() == Some(&true) {
            settled.pop_front();
            first += 1;
        }
    }
    let seconds = now.saturating_since(Instant::ZERO).as_secs_f64();
    SharedWindow {
        goodput_bps: first as f64 * f64::from(traffic.payload) * 8.0 / seconds,
        stalled: links.iter().map(|link| link.stalled.as_secs_f64() / seconds).collect(),
    }
}

/// Goodput in bits per second of `traffic` for a client alone that has one radio for `links` (EMLSR), without losses. A PPDU on
/// each link in turn, because the next link has won its access while the last one was in use; ACKs come one access per PPDU.
pub fn single_radio(links: &[Hop], traffic: &Traffic, feedback: Feedback, radio: &Emlsr) -> f64 {
    let (mut bits, mut time) = (0.0, Duration::ZERO);
    for hop in links {
        let Capacity { mpdus_per_ppdu, airtime, .. } = capacity(hop, traffic, feedback);
        let [_, before_data] = hop.phy.calling_time(&hop.control, radio.padding);
        time +=
            radio.transition + before_data + airtime.data + airtime.data_link_ack + airtime.compressed_acks;
        time += airtime.ack + airtime.ack_link_ack;
        if let (Feedback::Packets { .. }, RadioReturn::WithTransition) = (feedback, radio.radio_return) {
            time += airtime.ack_acquisition + radio.transition;
        }
        bits += 8.0 * f64::from(mpdus_per_ppdu) * f64::from(traffic.payload);
    }
    bits / time.as_secs_f64()
}

/// Goodput in bits per second of `traffic` for a client alone whose links deafen each other (NSTR), without losses. The links begin when
/// the longest of their backoffs is over, and end together; all ACKs go in one access on the fastest, and block the others.
pub fn send_or_receive(links: &[Hop], traffic: &Traffic, feedback: Feedback) -> f64 {
    let each: Vec<Capacity> = links.iter().map(|hop| capacity(hop, traffic, feedback)).collect();
    let longest = |part: fn(&Airtime) -> Duration| each.iter().map(|link| part(&link.airtime)).max();
    let parts = [|it: &Airtime| it.data, |it: &Airtime| it.data_link_ack, |it: &Airtime| it.compressed_acks];
    let together: Duration = parts.into_iter().filter_map(longest).sum();
    let mpdus: u32 = each.iter().map(|link| link.mpdus_per_ppdu).sum();
    let acks = match (feedback, links.iter().max_by_key(|hop| hop.data.rate())) {
        (Feedback::Packets { acks_per_segment }, Some(fastest)) => {
            fastest.ack_access(traffic, (f64::from(mpdus) * acks_per_segment).round() as u32).total()
        }
        _ => Duration::ZERO,
    };
    let access = links.first().map_or(0.0, |hop| {
        hop.phy.aifs().as_secs_f64()
            + hop.phy.slot.as_secs_f64() * longest_backoff(hop.phy.cw_min, links.len())
    });
    let bits = 8.0 * f64::from(mpdus) * f64::from(traffic.payload);
    bits / (access + (together + acks).as_secs_f64())
}

/// Mean of the largest of `links` backoffs in slots, each between 0 and `window`.
fn longest_backoff(window: u32, links: usize) -> f64 {
    let below = |slots: u32| (f64::from(slots) / f64::from(window + 1)).powi(links as i32);
    (0..=window).map(|slots| f64::from(slots) * (below(slots + 1) - below(slots))).sum()
}

/// Bounds of several links together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkBounds {
    /// The standard.
    pub phy: &'static str,
    /// Rates of the links in bits per second.
    pub rates_bps: Vec<u64>,
    /// Block Ack window in MPDUs.
    pub window: u32,
    /// Bounds, from each link alone to all together.
    pub rows: Vec<LinkBound>,
}

/// Goodput in one set-up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkBound {
    /// What it is of.
    pub name: String,
    /// Goodput in bits per second.
    pub goodput_bps: f64,
    /// Share of the time for which the window stalled each link; empty where it cannot.
    pub stalled: Vec<f64>,
}

/// The bounds of `links`. The first is at index 0.
///
/// # Errors
/// If they are not two or three links of 802.11be.
pub fn link_bounds(links: &[Hop]) -> Result<LinkBounds, InputError> {
    let standard = links.first().map_or(Standard::A, |link| link.phy.standard);
    if standard != Standard::Be || !(2..=3).contains(&links.len()) {
        let what = format!("{} of {}", count(links.len() as u64, "link"), standard.name());
        return Err(InputError::new("--links", what).allowed("one or two more, with --phy 802.11be"));
    }
    let window = links.iter().map(|hop| hop.block_ack_window).min().unwrap_or(0);
    let plain = |name: String, goodput_bps| LinkBound { name, goodput_bps, stalled: Vec::new() };
    let over = |traffic, feedback| -> Vec<f64> {
        links.iter().map(|hop| capacity(hop, traffic, feedback).goodput.as_bps() as f64).collect()
    };
    let udp = over(&Traffic::UDP, Feedback::None);
    let mut rows: Vec<LinkBound> =
        (udp.iter().zip(1..)).map(|(bps, number)| plain(format!("UDP, link {number} alone"), *bps)).collect();
    rows.push(plain("UDP, where the window never binds".to_owned(), udp.iter().sum()));
    for (name, share, scope) in [
        ("UDP, greedy, Block Acks of their own link", WindowShare::Greedy, BlockAckScope::OwnLink),
        ("UDP, greedy, shared Block Acks", WindowShare::Greedy, BlockAckScope::Shared),
        ("UDP, proportional shares of the window", WindowShare::Proportional, BlockAckScope::OwnLink),
    ] {
        let SharedWindow { goodput_bps, stalled } = shared_window(links, &Traffic::UDP, share, scope);
        rows.push(LinkBound { name: name.to_owned(), goodput_bps, stalled });
    }
    let sum = |feedback| over(&Traffic::TCP, feedback).iter().sum();
    rows.push(plain("TCP, one ACK per 2 segments".to_owned(), sum(Feedback::every(2))));
    let data = capacity(&links[0], &Traffic::TCP, Feedback::None).goodput.as_bps() as f64;
    rows.push(plain("TCP, data on link 1 alone, ACKs on another".to_owned(), data));
    rows.push(plain("TCP over HACK".to_owned(), sum(Feedback::HACK)));
    let schemes = [
        ("UDP", Traffic::UDP, Feedback::None),
        ("TCP", Traffic::TCP, Feedback::every(2)),
        ("HACK", Traffic::TCP, Feedback::HACK),
    ];
    for (what, traffic, feedback) in schemes {
        rows.push(plain(format!("{what}, NSTR"), send_or_receive(links, &traffic, feedback)));
    }
    // What Intel's and Realtek's Linux drivers advertise.
    for us in [[32, 64], [256, 256]] {
        let [padding, transition] = us.map(Duration::from_micros);
        let radio = Emlsr { padding, transition, ..Emlsr::USUAL };
        for (what, traffic, feedback) in schemes {
            let name = format!("{what}, EMLSR, padding {}, transition {} us", us[0], us[1]);
            rows.push(plain(name, single_radio(links, &traffic, feedback, &radio)));
        }
    }
    let rates_bps = links.iter().map(|hop| hop.data.rate().as_bps()).collect();
    Ok(LinkBounds { phy: standard.name(), rates_bps, window, rows })
}

impl LinkBounds {
    /// As text.
    pub fn to_text(&self) -> String {
        let mut table = TextTable::new(&[["", ""], ["goodput", "Mb/s"], ["stalled by", "the window"]]);
        for LinkBound { name, goodput_bps, stalled } in &self.rows {
            let stalls: Vec<String> = stalled.iter().map(|share| percent(Some(*share), 0)).collect();
            table.push(vec![name.clone(), number(goodput_bps / 1e6, 1), stalls.join(", ")]);
        }
        let rates: Vec<String> = self.rates_bps.iter().map(|bps| number(*bps as f64 / 1e6, 1)).collect();
        format!(
            "{} over links of {} Mb/s with a Block Ack window of {}; neither losses nor collisions\n\n{}",
            self.phy,
            rates.join(" and "),
            self.window,
            table.render()
        )
    }
}

#[cfg(test)]
mod tests {
    use tacit_link::wifi::phy::{Coding, GuardInterval, HeOptions, Mode, PacketExtension};
    use tacit_packet::units::BitRate;

    use super::*;
    use crate::AckCoding;

    /// With binary convolutional codes, without packet extension, and with Block Acks at 24 Mb/s, as ns-3 reads durations.
    fn hop(width_mhz: u16, streams: u8, mcs: u8, window: u32) -> Hop {
        let options = HeOptions {
            coding: Coding::Bcc,
            extension: PacketExtension::Us0,
            ..HeOptions::usual(GuardInterval::Ns800)
        };
        let mode = Mode::eht(mcs, streams, width_mhz, GuardInterval::Ns800).unwrap();
        let hop = Hop::new(Standard::Be, mode.with_options(options).unwrap());
        Hop { control: Mode::ofdm(BitRate::from_mbps(24)).unwrap(), block_ack_window: window, ..hop }
    }

    /// Two other programs found these numbers: a script of 100 lines, and ns-3 where Block Acks are shared.
    #[test]
    fn a_window_that_binds_costs_more_than_a_link_brings() {
        use BlockAckScope::{OwnLink, Shared};
        use WindowShare::{Greedy, Proportional};
        let equal = |window| [hop(80, 1, 13, window), hop(80, 1, 13, window)];
        let beside = |width, streams, mcs| [hop(width, streams, mcs, 1024), hop(160, 2, 13, 1024)];
        for (links, share, scope, mbps) in [
            (equal(1024), Greedy, OwnLink, 1310.0),
            (equal(512), Greedy, OwnLink, 1086.0),
            (equal(512), Proportional, OwnLink, 1305.0),
            (equal(256), Greedy, OwnLink, 669.0),
            (equal(256), Greedy, Shared, 669.0),
            (equal(256), Proportional, OwnLink, 1247.0),
            (beside(40, 2, 11), Greedy, OwnLink, 2388.0),
            (beside(40, 2, 11), Greedy, Shared, 2640.0),
            (beside(40, 2, 11), Proportional, OwnLink, 3069.0),
            (beside(20, 1, 11), Greedy, OwnLink, 2406.0),
            (beside(20, 1, 11), Greedy, Shared, 2393.0),
            (beside(20, 1, 11), Proportional, OwnLink, 2712.0),
            (beside(160, 2, 13), Greedy, OwnLink, 2653.0),
            (beside(160, 2, 13), Proportional, OwnLink, 4905.0),
        ] {
            let found = shared_window(&links, &Traffic::UDP, share, scope).goodput_bps / 1e6;
            assert!((found / mbps - 1.0).abs() < 0.005, "{share:?}, {scope:?}: {found:.1} for {mbps}");
        }
    }

    /// Two links of 80 MHz; compressed ACKs of one byte. The simulator's are in `link/tests/it/emlsr.rs`.
    #[test]
    fn one_radio_costs_a_call_and_a_transition() {
        let links = [hop(80, 1, 13, 1024); 2];
        let compressed =
            Feedback::OnLinkAcks { acks_per_segment: 0.5, coding: AckCoding { first: 1.0, further: 1.0 } };
        for (padding, transition, expected) in [
            (0, 0, [656.3, 611.8, 600.7, 639.6]),
            (32, 64, [645.3, 602.1, 585.3, 629.0]),
            (128, 128, [627.9, 586.7, 565.1, 612.2]),
            (256, 256, [601.9, 563.6, 533.5, 587.1]),
        ] {
            let [padding, transition] = [padding, transition].map(Duration::from_micros);
            let radio = Emlsr { padding, transition, ..Emlsr::USUAL };
            let at_once = Emlsr { radio_return: RadioReturn::After(Duration::ZERO), ..radio };
            let found = [
                single_radio(&links, &Traffic::UDP, Feedback::None, &radio),
                single_radio(&links, &Traffic::TCP, Feedback::every(2), &at_once),
                single_radio(&links, &Traffic::TCP, Feedback::every(2), &radio),
                single_radio(&links, &Traffic::TCP, compressed, &radio),
            ];
            for (bps, mbps) in found.into_iter().zip(expected) {
                assert!((bps / 1e6 / mbps - 1.0_f64).abs() < 0.005, "{radio:?}: {:.1} for {mbps}", bps / 1e6);
            }
        }
    }

    /// Two links of 80 MHz; the simulator's are in `link/tests/it/nstr.rs`.
    #[test]
    fn links_that_deafen_each_other_begin_and_end_together() {
        assert!((longest_backoff(15, 2) - 10.16).abs() < 0.01);
        let links = [hop(80, 1, 13, 1024); 2];
        let coding = AckCoding { first: 1.0, further: 1.0 };
        for (traffic, feedback, mbps) in [
            (Traffic::UDP, Feedback::None, 1306.4),
            (Traffic::TCP, Feedback::every(2), 1165.2),
            (Traffic::TCP, Feedback::OnLinkAcks { acks_per_segment: 0.5, coding }, 1273.3),
        ] {
            let found = send_or_receive(&links, &traffic, feedback) / 1e6;
            assert!((found / mbps - 1.0).abs() < 0.005, "{feedback:?}: {found:.1} for {mbps}");
        }
    }

    #[test]
    fn links_add_up_where_the_window_never_binds() {
        let links = [hop(20, 1, 11, 1024), hop(80, 1, 13, 1024)];
        assert!(link_bounds(&links[..1]).is_err());
        let bounds = link_bounds(&links).unwrap();
        let goodput_bps = |name: &str| bounds.rows.iter().find(|row| row.name == name).unwrap().goodput_bps;
        let sum = goodput_bps("UDP, link 1 alone") + goodput_bps("UDP, link 2 alone");
        assert!((sum / goodput_bps("UDP, where the window never binds") - 1.0).abs() < 1e-9);
        assert!(
            goodput_bps("UDP, proportional shares of the window")
                <= goodput_bps("UDP, where the window never binds") * 1.001
        );
    }
}
