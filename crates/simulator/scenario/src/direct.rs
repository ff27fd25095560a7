//! Direct links between clients: which pairs have one, its signal, and its simulator configuration.

use std::collections::BTreeSet;

use tacit_link::wifi::{BothWays, DirectLink, StationConfig, StationId};
use tacit_packet::units::Duration;

use crate::error::InputError;
use crate::input::{Mismatch, Value, integer};
use crate::keys::kind::{Distance, NONE};
use crate::traffic::Direction;
use crate::{ClientOverride, MAX_CLIENTS, Scenario, Signal, Wifi};

/// Two clients, numbered from 0, the lower number first.
pub type ClientPair = [u32; 2];

/// Which clients have direct links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DirectPairs {
    /// None.
    #[default]
    None,
    /// All pairs that exchange data.
    All,
    /// These pairs. Those with a client that the run does not have are ignored.
    Of(BTreeSet<ClientPair>),
}

/// Direct links of `[wifi]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectPlan {
    /// The pairs of clients that have them.
    pub pairs: DirectPairs,
    /// Signal between the ends of each link. `None` derives it from their positions.
    pub signal: Option<Signal>,
}

const ALL: &str = "all";

/// Values of `direct-links`.
pub(crate) const PAIRS_ALLOWED: &str =
    "`\"none\"`, `\"all\"`, or pairs of clients from 1, such as `[[1, 2], [1, 3]]`";

pub(crate) fn pairs(value: &Value) -> Result<DirectPairs, Mismatch> {
    let wrong = || {
        let allowed = format!(
            "\"none\", \"all\", or pairs of two clients from 1 to {MAX_CLIENTS}, such as [[1, 2], [1, 3]]"
        );
        Mismatch::new(format!("{value} is no list of pairs of clients"), allowed)
    };
    let client = integer(1..=MAX_CLIENTS);
    match value {
        Value::Text(text) if text == NONE => Ok(DirectPairs::None),
        Value::Text(text) if text == ALL => Ok(DirectPairs::All),
        Value::List(items) => {
            let pair = |item: &Value| {
                let Value::List(ends) = item else { return Err(wrong()) };
                let [one, other] = ends.as_slice() else { return Err(wrong()) };
                let one = client(&one.value).map_err(|_| wrong())?;
                let other = client(&other.value).map_err(|_| wrong())?;
                if one == other { Err(wrong()) } else { Ok([one.min(other) - 1, one.max(other) - 1]) }
            };
            items.iter().map(|item| pair(&item.value)).collect::<Result<_, _>>().map(DirectPairs::Of)
        }
        _ => Err(wrong()),
    }
}

pub(crate) fn write_pairs(pairs: &DirectPairs) -> String {
    match pairs {
        DirectPairs::None => format!("\"{NONE}\""),
        DirectPairs::All => format!("\"{ALL}\""),
        DirectPairs::Of(pairs) => {
            let numbers: Vec<_> = pairs.iter().map(|pair| pair.map(|index| index + 1)).collect();
            format!("{numbers:?}")
        }
    }
}

impl Scenario {
    /// The pairs among the first `clients` clients that have a direct link, each with its signal.
    ///
    /// # Errors
    /// If a signal is missing, or the ends of a link do not hear each other or move out of range.
    pub(crate) fn direct_pairs(
        &self,
        wifi: &Wifi,
        clients: u32,
    ) -> Result<Vec<(ClientPair, Option<Signal>)>, InputError> {
        let pairs = match &wifi.direct.pairs {
            DirectPairs::None => return Ok(Vec::new()),
            DirectPairs::All => self.pairs_with_data(clients),
            DirectPairs::Of(pairs) => pairs.clone(),
        };
        // As with flows, naming a client that the run does not have is allowed.
        let pairs = pairs.into_iter().filter(|[_, later]| *later < clients);
        pairs.map(|pair| Ok((pair, self.signal_between(wifi, pair)?))).collect()
    }

    /// Pairs of clients in which one sends data to the other.
    fn pairs_with_data(&self, clients: u32) -> BTreeSet<ClientPair> {
        let of_clients = self.flows.is_empty().then_some((&self.traffic, None));
        let plans = self.flows.iter().map(|flow| (&flow.traffic, flow.clients.as_ref()));
        let between = of_clients
            .into_iter()
            .chain(plans)
            .filter(|(traffic, _)| traffic.direction == Direction::StationToStation);
        let mut pairs = BTreeSet::new();
        for (traffic, named) in between {
            for sender in (0..clients).filter(|index| named.is_none_or(|named| named.contains(index))) {
                let receiver = traffic.receiver(sender, clients);
                if receiver != sender {
                    pairs.insert([sender.min(receiver), sender.max(receiver)]);
                }
            }
        }
        pairs
    }

    /// The signal between two clients with a direct link. `None` means perfect reception, and is used if the access
    /// point receives both clients perfectly.
    fn signal_between(&self, wifi: &Wifi, pair: ClientPair) -> Result<Option<Signal>, InputError> {
        let [one, other] = pair.map(|index| index + 1);
        let refused = |what: String, allowed: String| {
            Err(InputError::new(format!("{}: wifi.direct-links", self.name), what).allowed(allowed))
        };
        let clients = pair.map(|index| self.client_override(index));
        if self.is_hidden(wifi, pair) {
            let what = format!("clients {one} and {other} are hidden from each other");
            return refused(what, "direct links between clients that hear each other".to_owned());
        }
        if let Some((number, _)) =
            [one, other].into_iter().zip(&clients).find(|(_, client)| client.leave.is_some())
        {
            let what = format!("client {number} leaves, and its distance from others is unknown then");
            return refused(what, "direct links between clients without client.leave".to_owned());
        }
        let [a, b] = &clients;
        let placed = a.position.zip(b.position).map(|(a, b)| {
            // Two clients at the same position have adjacent antennas.
            Signal::Distance(a.distance_m(&b).max(*Distance::METRES.start()))
        });
        let to_access_point = clients.each_ref().map(|client| client.signal.or(wifi.signal));
        let Some(signal) = wifi.direct.signal.or(placed) else {
            if to_access_point == [None; 2] {
                return Ok(None);
            }
            let what = format!("no setting says how well clients {one} and {other} hear each other");
            return refused(
                what,
                "wifi.direct-distance, wifi.direct-snr, or a position of each client".to_owned(),
            );
        };
        if let (Signal::Distance(between), [Some(Signal::Distance(a)), Some(Signal::Distance(b))]) =
            (signal, to_access_point)
        {
            let (least, most) = ((a - b).abs(), a + b);
            // Tolerance for rounding in distances computed from positions.
            let slack = most * 1e-9;
            if !(least - slack..=most + slack).contains(&between) {
                let what = format!(
                    "clients {one} and {other}, {a} m and {b} m from the access point, are not {between} m from each other"
                );
                let least = least.max(*Distance::METRES.start());
                return refused(what, format!("wifi.direct-distance from {least} m to {most} m"));
            }
        }
        Ok(Some(signal))
    }

    /// The simulator's configuration of a direct link, in one direction and then the other.
    pub(crate) fn direct_link(
        &self,
        wifi: &Wifi,
        pair: ClientPair,
        signal: Option<Signal>,
    ) -> [DirectLink; 2] {
        let clients = pair.map(|index| self.client_override(index));
        let [a, b] = &clients;
        // Both directions use the same mode: that of the end with the older standard. An ideal mode follows the signal,
        // unless a client sets its own.
        let mode_of = |client: &ClientOverride| client.mode.or(wifi.ideal.is_none().then_some(wifi.mode));
        let slower_mode = [a, b]
            .into_iter()
            .filter_map(mode_of)
            .min_by_key(|mode| (wifi.bss.standard_at(mode), mode.rate()));
        // The path includes no wired hop.
        let mode = wifi.mode_at(slower_mode, signal, Duration::ZERO);
        let acks_of = |client: &ClientOverride| client.link_acks.unwrap_or(wifi.link_acks).up;
        let way = |from: usize, to: usize| {
            let [sender, receiver] = [from, to].map(|end| &clients[end]);
            let [from, to] = [from, to].map(|end| StationId(pair[end] as u16 + 1));
            let link = StationConfig {
                control_mode: receiver.ack_mode.or(wifi.ack_mode),
                uplink_loss: sender.mpdu_error.as_ref().unwrap_or(&wifi.mpdu_error).up.clone(),
                link_ack_loss: sender.link_ack_error.as_ref().unwrap_or(&wifi.link_ack_error).clone(),
                link_acks: BothWays { down: acks_of(receiver), up: acks_of(sender) },
                uplink_queue: sender.station_queue.unwrap_or(wifi.station_queue),
                ..wifi.link_at(mode, signal)
            };
            DirectLink { from, to, link }
        };
        [way(0, 1), way(1, 0)]
    }
}
