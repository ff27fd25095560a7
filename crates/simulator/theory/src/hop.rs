//! Parses the wireless hop for closed forms from user input, and formats the results.

use serde::Serialize;
use tacit_link::wifi::phy::{Mode, ResourceUnit, Standard};

use crate::rounds::RoundWay;
use crate::{Capacity, Feedback, Hop, Rounds, Traffic, capacity};
use tacit_scenario::InputError;
use tacit_scenario::input::{argument, bit_rate, standard};
use tacit_scenario::table::{TextTable, count, number, percent, signed_percent};

/// The default standard of a hop.
pub const USUAL_PHY: &str = "802.11n";
/// The default rate, which is that of the HACK paper's measurements.
pub const USUAL_RATE: &str = "150Mbps";

/// The hop of `phy` (such as `802.11n`) at `rate` (such as `150Mbps`).
///
/// # Errors
/// If the standard does not exist, or does not have this rate.
pub fn parse(phy: &str, rate: &str) -> Result<Hop, InputError> {
    let standard = argument("--phy", phy, standard)?;
    let rate = argument("--rate", rate, bit_rate)?;
    let mode = Mode::for_rate(standard, rate)
        .map_err(|unknown| InputError::new("--rate", unknown.what()).allowed(unknown.rates()))?;
    Ok(Hop::new(standard, mode))
}

/// The hop of `phy` and `rate`, with the default for one that is missing; `None` if both are missing.
///
/// # Errors
/// Same as [`parse`].
pub fn parse_optional(phy: Option<&str>, rate: Option<&str>) -> Result<Option<Hop>, InputError> {
    let is_given = phy.is_some() || rate.is_some();
    is_given.then(|| parse(phy.unwrap_or(USUAL_PHY), rate.unwrap_or(USUAL_RATE))).transpose()
}

/// The default hop.
pub fn usual() -> Hop {
    parse(USUAL_PHY, USUAL_RATE).expect("802.11n has 150 Mb/s")
}

/// Maximum goodput of a hop without losses and collisions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bounds {
    /// The standard.
    pub phy: &'static str,
    /// Rate of data in bits per second.
    pub rate_bps: u64,
    /// Rate of link-layer ACKs in bits per second.
    pub control_rate_bps: u64,
    /// MPDUs of 1500-byte packets per PPDU.
    pub mpdus_per_ppdu: u32,
    /// Goodput in bits per second.
    pub goodput_bps: Goodputs,
    /// Gain of HACK over TCP, as a fraction.
    pub hack_gain: f64,
    /// Fraction of airtime used by feedback.
    pub feedback_airtime: Goodputs,
}

/// A value for each of three transports.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Goodputs {
    /// No acknowledgments.
    pub udp: f64,
    /// One ACK per two segments.
    pub tcp: f64,
    /// One ACK per two segments, compressed onto link-layer ACKs.
    pub hack: f64,
}

/// Computes the bounds of `hop`.
pub fn bounds(hop: &Hop) -> Bounds {
    let udp = capacity(hop, &Traffic::UDP, Feedback::None);
    let tcp = capacity(hop, &Traffic::TCP, Feedback::every(2));
    let hack = capacity(hop, &Traffic::TCP, Feedback::HACK);
    let each = |goodput: fn(&Capacity) -> f64| Goodputs {
        udp: goodput(&udp),
        tcp: goodput(&tcp),
        hack: goodput(&hack),
    };
    let goodput = each(|capacity| capacity.goodput.as_bps() as f64);
    Bounds {
        phy: hop.phy.standard.name(),
        rate_bps: hop.data.rate().as_bps(),
        control_rate_bps: hop.control.rate().as_bps(),
        mpdus_per_ppdu: tcp.mpdus_per_ppdu,
        hack_gain: goodput.hack / goodput.tcp - 1.0,
        goodput_bps: goodput,
        feedback_airtime: each(|capacity| capacity.airtime.feedback_share()),
    }
}

impl Bounds {
    /// As text.
    pub fn to_text(&self) -> String {
        let mut table = TextTable::new(&[
            ["", ""],
            ["goodput", "Mb/s"],
            ["gain over", "TCP"],
            ["of UDP", "bound"],
            ["airtime of", "feedback"],
        ]);
        let (goodput, feedback) = (&self.goodput_bps, &self.feedback_airtime);
        let rows = [
            ("TCP, one ACK per 2 segments", goodput.tcp, feedback.tcp),
            ("the same over HACK", goodput.hack, feedback.hack),
            ("UDP", goodput.udp, feedback.udp),
        ];
        for (name, bps, share) in rows {
            table.push(vec![
                name.to_owned(),
                number(bps / 1e6, 2),
                signed_percent(Some(bps / goodput.tcp - 1.0).filter(|gain| *gain != 0.0), 1),
                percent(Some(bps / goodput.udp), 1),
                percent(Some(share), 1),
            ]);
        }
        format!(
            "{} at {} Mb/s, link-layer ACKs at {} Mb/s, {} per PPDU; neither losses nor collisions\n\n{}",
            self.phy,
            number(self.rate_bps as f64 / 1e6, 1),
            number(self.control_rate_bps as f64 / 1e6, 0),
            count(self.mpdus_per_ppdu.into(), "MPDU"),
            table.render()
        )
    }
}

/// Maximum goodput with multi-user PPDUs, by the way in which ACKs are returned.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharedBounds {
    /// The standard.
    pub phy: &'static str,
    /// Rate of data to a single user in bits per second.
    pub rate_bps: u64,
    /// Rate of triggers and Multi-STA Block Acks in bits per second.
    pub control_rate_bps: u64,
    /// Number of users per PPDU.
    pub users: u32,
    /// Number of tones in each user's resource unit.
    pub unit_tones: u16,
    /// MPDUs of 1500-byte packets per user in a PPDU, without an embedded trigger.
    pub mpdus_per_ppdu: u32,
    /// Bounds by the way in which ACKs are returned, ending with UDP.
    pub ways: Vec<WayBounds>,
}

/// Maximum goodput with one way of returning ACKs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WayBounds {
    /// Name of the way.
    pub name: &'static str,
    /// Goodput of all users in bits per second.
    pub goodput_bps: f64,
    /// Fraction of airtime used by feedback, without Block Acks.
    pub feedback_airtime: f64,
}

/// The bounds for `users` users that share each PPDU over `hop`, with PPDUs of maximum length.
///
/// # Errors
/// If the hop is not 802.11ax, or its channel does not have a resource unit for each user.
pub fn shared_bounds(hop: &Hop, users: u32) -> Result<SharedBounds, InputError> {
    let error = |what: String, allowed: &str| InputError::new("--users", what).allowed(allowed.to_owned());
    let standard = hop.phy.standard;
    if standard != Standard::Ax {
        return Err(error(format!("{} has no PPDUs of several users here", standard.name()), "802.11ax"));
    }
    let width_mhz = hop.data.width_mhz;
    let most = ResourceUnit::Tones26.count_in(width_mhz);
    let Some(unit) = ResourceUnit::for_users(users as usize, width_mhz).filter(|_| users > 0) else {
        let what = format!("{width_mhz} MHz have no units for {users} users");
        return Err(error(what, &format!("1 to {most}")));
    };
    let mut mpdus_per_ppdu = 0;
    let ways = RoundWay::ALL.iter().filter_map(|way| {
        let capacity = way.capacity(&Rounds::new(*hop, users, way.ofdma))?;
        mpdus_per_ppdu = capacity.mpdus_per_ppdu.max(mpdus_per_ppdu);
        Some(WayBounds {
            name: way.name,
            goodput_bps: capacity.goodput.as_bps() as f64,
            feedback_airtime: capacity.airtime.feedback_share(),
        })
    });
    let ways = ways.collect();
    Ok(SharedBounds {
        phy: standard.name(),
        rate_bps: hop.data.rate().as_bps(),
        control_rate_bps: hop.control.rate().as_bps(),
        users,
        unit_tones: unit.tones(),
        mpdus_per_ppdu,
        ways,
    })
}

impl SharedBounds {
    /// As text.
    pub fn to_text(&self) -> String {
        let mut table = TextTable::new(&[["", ""], ["goodput", "Mb/s"], ["airtime of", "feedback"]]);
        for WayBounds { name, goodput_bps, feedback_airtime } in &self.ways {
            table.push(vec![
                (*name).to_owned(),
                number(goodput_bps / 1e6, 2),
                percent(Some(*feedback_airtime), 1),
            ]);
        }
        format!(
            "{} at {} Mb/s, {} at once with {} tones each, triggers at {} Mb/s, {} for each in a PPDU; neither losses nor \
             collisions, and one ACK per 2 segments\n\n{}",
            self.phy,
            number(self.rate_bps as f64 / 1e6, 1),
            count(self.users.into(), "user"),
            self.unit_tones,
            number(self.control_rate_bps as f64 / 1e6, 0),
            count(self.mpdus_per_ppdu.into(), "MPDU"),
            table.render()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_gain_at_150() {
        let bounds = bounds(&parse("802.11n", "150Mbps").unwrap());
        assert!((bounds.hack_gain - 0.073).abs() < 0.01, "{bounds:?}");
        assert!(bounds.goodput_bps.tcp < bounds.goodput_bps.hack);
        assert!(bounds.goodput_bps.hack < bounds.goodput_bps.udp);
    }

    #[test]
    fn users_have_units_of_one_channel_of_802_11ax() {
        let hop = parse("802.11ax", "600.5Mbps").unwrap();
        let bounds = shared_bounds(&hop, 4).unwrap();
        assert_eq!((bounds.unit_tones, bounds.mpdus_per_ppdu), (242, 62));
        let goodput = |name: &str| bounds.ways.iter().find(|way| way.name == name).unwrap().goodput_bps;
        assert!(goodput("TCP, ACKs by accesses of their own") < goodput("TCP, ACKs when asked"));
        assert!(goodput("TCP, ACKs when asked") < goodput("TCP, ACKs behind Block Acks"));
        assert!(goodput("TCP, ACKs behind Block Acks") < goodput("TCP/HACK"));
        assert!(goodput("TCP/HACK") < goodput("UDP"));
        let error = |hop: &Hop, users| shared_bounds(hop, users).unwrap_err().to_string();
        assert_eq!(error(&hop, 38), "--users: 80 MHz have no units for 38 users; allowed: 1 to 37");
        assert_eq!(error(&hop, 0), "--users: 80 MHz have no units for 0 users; allowed: 1 to 37");
        assert_eq!(
            error(&usual(), 4),
            "--users: 802.11n has no PPDUs of several users here; allowed: 802.11ax"
        );
    }

    #[test]
    fn wrong_arguments_say_what_is_right() {
        let error = |phy, rate| parse(phy, rate).unwrap_err().to_string();
        assert_eq!(
            error("802.11x", "54Mbps"),
            "--phy: unknown \"802.11x\", did you mean \"802.11a\"?; allowed: \"802.11a\", \"802.11b\", \"802.11g\", \"802.11n\", \
             \"802.11ac\", \"802.11ax\", \"802.11be\""
        );
        assert!(
            error("802.11a", "55Mbps").starts_with("--rate: 802.11a has no rate 55Mbps; allowed: 6Mbps, ")
        );
        assert!(error("802.11a", "54").contains("is not a rate"));
    }
}
