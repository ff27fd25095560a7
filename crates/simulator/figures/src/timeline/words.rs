//! A time line as boxes and as sentences.

use std::collections::BTreeSet;

use tacit_link::wifi::StationId;

use tacit_analysis::chart::Ink;
use tacit_analysis::chart::timeline::{Exchange, Frame, LOST, Note, Part};
use tacit_packet::units::Duration;
use tacit_runs::air::{Kind, Ppdu};
use tacit_scenario::table::count;

/// SIFS at 5 and 6 GHz.
const SIFS: Duration = Duration::from_micros(16);

/// Colour of compressed TCP ACKs.
const APPENDED: Ink = Ink::Series(1);

const fn ink(kind: Kind) -> Ink {
    match kind {
        Kind::Data => Ink::Series(0),
        Kind::TcpAck => Ink::Series(2),
        Kind::Ack | Kind::BlockAck => Ink::Series(3),
        Kind::BlockAckRequest | Kind::Trigger | Kind::Null => Ink::Series(6),
        Kind::Rts | Kind::Cts | Kind::CfEnd => Ink::Series(5),
        Kind::Beacon => Ink::Muted,
    }
}

/// All transmitters and receivers, the access point first.
fn stations(ppdus: &[Ppdu]) -> Vec<StationId> {
    let heard = ppdus.iter().flat_map(|ppdu| [Some(ppdu.transmitter), ppdu.receiver]);
    heard.flatten().chain([StationId::AP]).collect::<BTreeSet<_>>().into_iter().collect()
}

fn station_name(station: StationId) -> String {
    if station == StationId::AP { "AP".to_owned() } else { format!("client {}", station.0) }
}

/// Names of the lanes.
pub(super) fn lanes(ppdus: &[Ppdu]) -> Vec<String> {
    stations(ppdus).into_iter().map(station_name).collect()
}

/// The frames grouped into exchanges.
pub(super) fn exchanges(ppdus: &[Ppdu]) -> Vec<Exchange> {
    let stations = stations(ppdus);
    let lane = |station: StationId| stations.iter().position(|other| *other == station);
    let Some(first) = ppdus.first() else { return Vec::new() };
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut end = first.at;
    let mut answers_trigger = false;
    for (number, ppdu) in ppdus.iter().enumerate() {
        let start_us = ppdu.at.saturating_since(first.at).as_secs_f64() * 1e6;
        let part_of = part_of(ppdus, number);
        let frame = Frame {
            lane: lane(ppdu.transmitter).unwrap_or(0),
            to: ppdu.receiver.and_then(lane),
            start_us,
            duration_us: ppdu.duration.as_secs_f64() * 1e6,
            parts: parts(ppdu),
            mpdus: ppdu.arrived.clone(),
            // The parts of a multi-user PPDU leave no room for notes.
            notes: if part_of.1 == 1 { notes(ppdu) } else { Vec::new() },
            lost: ppdu.is_lost(),
            part_of,
        };
        // A trigger follows SIFS after the PPDU it refers to, and the responses SIFS after the trigger.
        let follows = ppdu.idle_before <= SIFS && (ppdu.kind == Kind::Trigger || answers_trigger);
        // Data after a Block Ack is in the same PPDU.
        let behind = ppdus[..number].iter().rev().take_while(|other| other.at == ppdu.at);
        let is_behind = behind.into_iter().any(|other| {
            let ends = (other.transmitter, other.receiver) == (ppdu.transmitter, ppdu.receiver);
            ends && other.kind == Kind::BlockAck && !ppdu.kind.is_response()
        });
        if is_behind
            && let Some(exchange) = exchanges.last_mut()
            && let Some(block_ack) = exchange.frames.iter_mut().rev().find(|other| other.lane == frame.lane)
        {
            block_ack.parts.extend(frame.parts);
            continue;
        }
        let belongs = ppdu.kind.is_response() || ppdu.at < end || follows;
        answers_trigger = ppdu.kind == Kind::Trigger || (answers_trigger && ppdu.at < end);
        match exchanges.last_mut().filter(|_| belongs) {
            Some(exchange) => exchange.frames.push(frame),
            None => {
                let label = format!("{:.2} ms", start_us / 1e3);
                exchanges.push(Exchange { label, frames: vec![frame] });
            }
        }
        end = end.max(ppdu.end());
    }
    exchanges
}

/// The index of this part in a multi-user PPDU, and the number of parts.
fn part_of(ppdus: &[Ppdu], number: usize) -> (usize, usize) {
    let this = &ppdus[number];
    let is_same =
        |ppdu: &Ppdu| (ppdu.at, ppdu.transmitter, ppdu.kind) == (this.at, this.transmitter, this.kind);
    let before = ppdus[..number].iter().rev().take_while(|ppdu| ppdu.at == this.at);
    let behind = ppdus[number..].iter().take_while(|ppdu| ppdu.at == this.at);
    let before = before.filter(|ppdu| is_same(ppdu)).count();
    (before, before + behind.filter(|ppdu| is_same(ppdu)).count())
}

fn parts(ppdu: &Ppdu) -> Vec<Part> {
    let more = if ppdu.more_data { " +" } else { "" };
    let label = match ppdu.kind {
        Kind::Data => count(ppdu.arrived.len() as u64, "MPDU") + more,
        Kind::TcpAck => count(ppdu.arrived.len() as u64, "TCP ACK"),
        Kind::Ack => "ACK".to_owned(),
        Kind::BlockAck => "BA".to_owned(),
        Kind::BlockAckRequest => "BAR".to_owned(),
        Kind::Trigger => "trigger".to_owned(),
        Kind::Null => "null".to_owned(),
        Kind::Rts => "RTS".to_owned(),
        Kind::Cts => "CTS".to_owned(),
        Kind::CfEnd => "CF-End".to_owned(),
        Kind::Beacon => "beacon".to_owned(),
    };
    let mut parts = vec![Part { label, ink: ink(ppdu.kind) }];
    if ppdu.appended > 0 {
        parts.push(Part { label: format!("{} B", ppdu.appended), ink: APPENDED });
    }
    parts
}

fn notes(ppdu: &Ppdu) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut note = |applies: bool, text: String, ink: Ink| {
        if applies {
            notes.push(Note { text, ink });
        }
    };
    note(ppdu.sync, "SYNC".to_owned(), Ink::Text);
    let retries =
        if ppdu.arrived.len() == 1 { "retry".to_owned() } else { format!("{} retried", ppdu.retries) };
    note(ppdu.retries > 0, retries, Ink::Muted);
    note(ppdu.again, "again".to_owned(), Ink::Text);
    let lost = if ppdu.is_lost() { "lost".to_owned() } else { format!("{} lost", ppdu.lost()) };
    note(ppdu.lost() > 0, lost, LOST);
    notes
}

/// The colours that occur, with their meaning.
pub(super) fn legend(ppdus: &[Ppdu]) -> Vec<(Ink, String)> {
    let kinds = [
        (Kind::Data, "data, + More Data"),
        (Kind::TcpAck, "TCP ACKs as packets"),
        (Kind::Ack, "ACK: link-layer ACK"),
        (Kind::BlockAck, "BA: Block Ack"),
        (Kind::BlockAckRequest, "BAR: Block Ack Request"),
        (Kind::Trigger, "trigger, which several answer at once"),
        (Kind::Null, "null: QoS Null, which says how much waits"),
        (Kind::Rts, "RTS: request to send"),
        (Kind::Cts, "CTS: clear to send"),
        (Kind::CfEnd, "CF-End: end of a TXOP"),
        (Kind::Beacon, "beacon"),
    ];
    let occurs = |kind: Kind| ppdus.iter().any(|ppdu| ppdu.kind == kind);
    let mut legend: Vec<(Ink, String)> = kinds
        .into_iter()
        .filter(|(kind, _)| occurs(*kind))
        .map(|(kind, text)| (ink(kind), text.to_owned()))
        .collect();
    if ppdus.iter().any(|ppdu| ppdu.appended > 0) {
        legend.push((APPENDED, "compressed TCP ACKs on it".to_owned()));
    }
    if ppdus.iter().any(|ppdu| ppdu.lost() > 0) {
        legend.push((LOST, "lost".to_owned()));
    }
    legend
}

/// The frames on the air, as sentences.
pub(super) fn in_words(ppdus: &[Ppdu]) -> String {
    ppdus.iter().map(sentence).collect::<Vec<_>>().join(" ")
}

fn sentence(ppdu: &Ppdu) -> String {
    let mpdus = |noun| count(ppdu.arrived.len() as u64, noun);
    let what = match ppdu.kind {
        Kind::Data => mpdus("MPDU"),
        Kind::TcpAck => mpdus("TCP ACK packet"),
        Kind::Ack => "an ACK".to_owned(),
        Kind::BlockAck => "a Block Ack".to_owned(),
        Kind::BlockAckRequest => "a Block Ack Request".to_owned(),
        Kind::Trigger => "a trigger".to_owned(),
        Kind::Null => "a QoS Null".to_owned(),
        Kind::Rts => "an RTS".to_owned(),
        Kind::Cts => "a CTS".to_owned(),
        Kind::CfEnd => "a CF-End".to_owned(),
        Kind::Beacon => "a beacon".to_owned(),
    };
    let mut text = format!("{} sends {what}", station_name(ppdu.transmitter));
    let mut add = |applies: bool, what: String| {
        if applies {
            text.push_str(&what);
        }
    };
    add(ppdu.more_data, " with More Data".to_owned());
    add(ppdu.sync, " with SYNC".to_owned());
    add(ppdu.retries > 0, format!(", {} of them retried", ppdu.retries));
    add(ppdu.appended > 0, format!(" with {} bytes of compressed TCP ACKs", ppdu.appended));
    add(ppdu.again, ", the earlier ones again".to_owned());
    match (ppdu.lost(), ppdu.is_lost()) {
        (0, _) => {}
        (_, true) => add(true, ": lost".to_owned()),
        (lost, false) => add(true, format!(": {lost} lost")),
    }
    text.push('.');
    text
}
