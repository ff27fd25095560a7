//! Recommends a link layer for a scenario, based on measurements: FWP, plain Block Ack or TCP/HACK.

use tacit_link::Loss;
use tacit_link::wifi::Protection;
use tacit_link::wifi::error_rate::mpdu_success;
use tacit_link::wifi::phy::{MPDU_DELIMITER_LEN, mpdu_len};

use crate::scheme::ALL;
use crate::traffic::ApplicationKind;
use crate::{Scenario, Transport};

/// The scheme whose link layer is compared with the others.
const FWP: &str = "fwp";
/// Losses are given in parts per million.
const MILLION: u64 = 1_000_000;
/// From this loss rate on, a station with FWP's MAC had 1.5 times the throughput of one whose window stalls (figure
/// fwp/fig7).
const MANY_LOSSES_PPM: u64 = 50_000;
/// Number of full-size MPDUs in an aggregate: 65,535 bytes hold 42 (802.11n).
const FULL_AGGREGATE: u32 = 42;
/// Bytes of the IP packets for which losses are estimated.
const FULL_PACKET: u32 = 1500;

/// One line per criterion. None if FWP is not applicable because nothing is aggregated.
pub(super) fn criteria(scenario: &Scenario) -> Vec<String> {
    let Some(wifi) = &scenario.wifi else { return Vec::new() };
    if wifi.bss.standard.phy().aggregation.is_none() {
        return Vec::new();
    }
    let Some(lost_ppm) = lost_ppm(scenario) else { return Vec::new() };
    let percent = lost_ppm as f64 * 100.0 / MILLION as f64;
    let mut lines = Vec::new();
    if lost_ppm == 0 {
        lines.push(
            "plain Block Ack or TCP/HACK: no frame is lost but in collisions, so no window stalls and FWP has nothing to gain"
                .to_owned(),
        );
        return lines;
    }
    let aggregate = wifi.bss.ampdu_mpdus.unwrap_or(FULL_AGGREGATE).min(FULL_AGGREGATE);
    let window = wifi.bss.block_ack_window;
    // With other stations present, the gain depends on the room that the window leaves after an aggregate
    // (docs/design/fwp-mac.md).
    let gains =
        if window > aggregate { "1.3 at 10 % and 1.8 at 40 %" } else { "1.7 at 10 % and 2.4 at 40 %" };
    if window >= 2 * aggregate {
        lines.push(format!(
            "plain Block Ack or TCP/HACK: an aggregate of {aggregate} has room in a window of {window} behind a frame that is \
             missing, and FWP's MAC gained 1.1 at 10 % of losses (here {percent:.1} %)"
        ));
    } else if lost_ppm < MANY_LOSSES_PPM {
        lines.push(format!(
            "plain Block Ack or TCP/HACK: at {percent:.1} % of losses a window of {window} with aggregates of {aggregate} \
             stalls seldom; FWP's MAC gained 1.2 at 1 %"
        ));
    } else {
        lines.push(format!(
            "FWP, or fwp-ap-repair: at {percent:.1} % of losses a window of {window} stalls behind them with aggregates of \
             {aggregate}; FWP's MAC gained {gains}, less the cost of repair"
        ));
    }
    match scenario.traffic.application {
        ApplicationKind::RequestResponse => lines.push(
            "pages: plain Block Ack or TCP/HACK. Where all clients have FWP, pages of 200 kB took 3 times as long at 10 % of \
             losses and pages of 2 MB twice (figure fwp/pages), for the last loss of an object holds it up"
                .to_owned(),
        ),
        ApplicationKind::Streaming => lines.push(
            "videos: where the channel is full at 10 % of losses, players waited a seventh as long under FWP as under Block Ack, \
             and not at all under TCP/HACK (figure fwp/pages)"
                .to_owned(),
        ),
        ApplicationKind::Bulk | ApplicationKind::OnOff => {}
    }
    if wifi.bss.protection == Protection::None {
        lines.push(
            "FWP needs RTS (wifi.protection = \"rts-cts\") where clients' ACKs collide with the access point: a collision takes a \
             whole aggregate, and the MAC does not repeat it"
                .to_owned(),
        );
    }
    let over_tcp = scenario.traffic.transport == Transport::Tcp;
    let path = "FWP is for cleartext HTTP, and the Internet path carries the Wi-Fi's losses again";
    let twice = format!("{path}: {:.0} % more here", lost_again_percent(lost_ppm));
    lines.push(if over_tcp { twice } else { format!("{twice}; this traffic has no TCP") });
    lines
}

/// Losses, including those of the repair, in percent of the data that arrives: p / (1 - p).
fn lost_again_percent(lost_ppm: u64) -> f64 {
    lost_ppm as f64 * 100.0 / MILLION.saturating_sub(lost_ppm).max(1) as f64
}

/// Losses of the first client's downlink at its rate, by the error model, in full packets per million: without retransmissions. A
/// scripted loss has no rate.
fn lost_ppm(scenario: &Scenario) -> Option<u64> {
    let fwp = ALL.iter().find(|scheme| scheme.name == FWP)?.applied_to(scenario);
    let setup = fwp.setup(1, 1).ok()?;
    let set = setup.bss.first()?;
    set.fwp_shim(set.clients.first()?.host)?;
    let station = set.config.stations.first()?;
    let scripted = match &station.downlink_loss {
        Loss::None | Loss::Scripted(_) => 0.0,
        Loss::Bernoulli(ratio) => ratio.as_fraction(),
        Loss::GilbertElliott(channel) => channel.mean_loss(),
    };
    let bytes = mpdu_len(set.config.standard.phy().mac_header_len(), FULL_PACKET) + MPDU_DELIMITER_LEN;
    let arrives = station.snr.map_or(1.0, |snr| mpdu_success(&station.mode, snr, bytes));
    Some((MILLION as f64 * (1.0 - (1.0 - scripted) * arrives)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(set: &[&str]) -> String {
        let set: Vec<String> = set.iter().map(|&text| text.to_owned()).collect();
        criteria(&Scenario::load("fwp-11n-600", &set).unwrap()).join("\n")
    }

    #[test]
    fn the_choice_follows_from_losses_and_windows() {
        let begins = |set: &[&str], start: &str| {
            let advice = advice(set);
            assert!(advice.starts_with(start), "{set:?}: {advice}");
        };
        begins(&[], "plain Block Ack or TCP/HACK: no frame is lost");
        begins(&["wifi.mpdu-error.down=10 %"], "FWP, or fwp-ap-repair: at 10.0 %");
        begins(&["wifi.mpdu-error.down=1 %"], "plain Block Ack or TCP/HACK: at 1.0 %");
        let wide = ["wifi.mpdu-error.down=10 %", "wifi.block-ack-window=64"];
        begins(&wide, "plain Block Ack or TCP/HACK: an aggregate of 32 has room in a window of 64");
    }

    #[test]
    fn costs_of_fwp_are_named() {
        let half = advice(&["wifi.mpdu-error.down=50 %"]);
        assert!(half.contains("100 % more here") && !half.contains("needs RTS"), "{half}");
        assert!(advice(&["wifi.mpdu-error.down=50 %", "wifi.protection=none"]).contains("needs RTS"));
        let of_program = |application: &str| {
            advice(&["wifi.mpdu-error.down=10 %", &format!("traffic.application={application}")])
        };
        assert!(of_program("request-response").contains("pages: plain Block Ack or TCP/HACK"));
        assert!(of_program("streaming").contains("videos: where the channel is full"));
        assert!(!half.contains("fwp/pages"));
        assert!(criteria(&Scenario::load("wlan-11a-54", &[]).unwrap()).is_empty());
        assert!(criteria(&Scenario::load("wired-10", &[]).unwrap()).is_empty());
    }
}
