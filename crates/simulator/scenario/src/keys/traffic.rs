//! `[traffic]` and `[[flow]]`.

use tacit_congestion::Algorithm;
use tacit_link::wifi::AccessCategory;
use tacit_packet::udp::ReportAfter;
use tacit_packet::units::{BitRate, Bytes};
use tacit_sim::setup::{Law, MAX_CONNECTIONS, MAX_OBJECTS};

use super::entry::{About, Key, Keys, named};
use super::hack::HOST_TIME;
use super::kind::{
    ANY_TIME, Choice, Flag, Given, Kind as _, OrNone, Own, Rate, SOME_TIME, Size, Span, Whole, or,
};
use super::tcp::{BUFFER, CONTROLS};
use crate::MAX_CLIENTS;
use crate::input::{Mismatch, Value, integer, title};
use crate::traffic::{ApplicationKind, ApplicationKnobs, Direction, ObjectsPlan, TrafficPlan, Transport};

const MAX_DATAGRAMS_PER_REPORT: u32 = 1_000_000;
/// Size of an object, up to 1 TiB.
const PIECE: Size = Size(1, 1 << 40);
/// Payload of a datagram in bytes: from the length of the sequence number up to the maximum.
pub(crate) const UDP_PAYLOAD: &str = "udp-payload";
const DATAGRAM: Size = Size(8, 65_535);
/// Linux's `net.core.wmem_default`: 212,992 bytes of memory. A datagram of 1,472 bytes takes 2,304, so they hold 92.
const UDP_SEND_BUFFER: Bytes = Bytes(92 * 1_500);

/// The defaults.
pub(crate) fn usual() -> TrafficPlan {
    TrafficPlan {
        direction: Direction::Download,
        peer: None,
        transport: Transport::Tcp,
        size: None,
        udp_rate: None,
        udp_report: None,
        udp_payload: None,
        udp_send_buffer: Some(UDP_SEND_BUFFER),
        access_category: None,
        congestion: None,
        application: ApplicationKind::Bulk,
        knobs: ApplicationKnobs::default(),
    }
}

pub(crate) const KIND: &str = "kind";
pub(crate) const PEER: &str = "peer";
pub(crate) const TRANSPORT: &str = "transport";
pub(crate) const TRANSPORTS: Choice<Transport> =
    Choice(&[("tcp", Transport::Tcp), ("tack", Transport::Tack), ("udp", Transport::Udp)]);

pub(crate) const ACCESS_CATEGORY: Key<Choice<AccessCategory>> = named("access-category")
    .means("EDCA access category, both ways; 802.11a has `\"be\"` only")
    .described("`\"be\"`, or as the client says")
    .key(Choice(&[
        (AccessCategory::Background.name(), AccessCategory::Background),
        (AccessCategory::BestEffort.name(), AccessCategory::BestEffort),
        (AccessCategory::Video.name(), AccessCategory::Video),
        (AccessCategory::Voice.name(), AccessCategory::Voice),
    ]));

const LAWS: Choice<Law> = Choice(&[("exponential", Law::Exponential), ("fixed", Law::Fixed)]);

type Flow = About<TrafficPlan>;

pub(crate) const TRAFFIC: Keys<TrafficPlan> = &[
    &Flow::named(KIND)
        .means("server to client, client to server, both, or client to client (two or more, not with FWP)")
        .field(
            Choice(&[
                ("download", Direction::Download),
                ("upload", Direction::Upload),
                ("both", Direction::Both),
                ("station-to-station", Direction::StationToStation),
            ]),
            |flow| &mut flow.direction,
        ),
    &Flow::named(PEER)
        .means("receiver of `station-to-station`")
        .described("the next client, the first after the last")
        .field(
            Given(Own {
                read: client_number,
                write: |peer| (peer + 1).to_string(),
                allowed: "number of a client, from 1",
            }),
            |flow| &mut flow.peer,
        ),
    &Flow::named(TRANSPORT)
        .means("transport of the scenario as written; schemes change it")
        .field(TRANSPORTS, |flow| &mut flow.transport),
    &ACCESS_CATEGORY,
    &Flow::named("size")
        .means("bytes per flow; without it, unlimited")
        .field(Given(PIECE), |flow| &mut flow.size),
    &Flow::named("udp-rate").means("payload rate; `saturating` keeps the first queue full").field(
        Own { read: saturating_or_rate, write: write_rate, allowed: "`\"saturating\"` or a rate" },
        |flow| &mut flow.udp_rate,
    ),
    &Flow::named("udp-report")
        .means(
            "the sink reports this long after an arrival, or every this many, in a datagram that \
             counts as a TCP ACK",
        )
        .field(
            Given(Own {
                read: time_or_datagrams,
                write: |after| match after {
                    ReportAfter::Time(time) => HOST_TIME.write(time),
                    ReportAfter::Datagrams(count) => format!("\"{count} datagrams\""),
                },
                allowed: "1 us to 1 s, or `\"4 datagrams\"` (1 to 1000000)",
            }),
            |flow| &mut flow.udp_report,
        ),
    &Flow::named(UDP_PAYLOAD)
        .means("bytes after the UDP header")
        .described("as many as fill `tcp.mtu`")
        .field(Given(DATAGRAM), |flow| &mut flow.udp_payload),
    &Flow::named("udp-send-buffer")
        .means("most bytes of a flow with a `udp-rate` in its station's queue")
        .field(OrNone(BUFFER), |flow| &mut flow.udp_send_buffer),
    &Flow::named("application")
        .means("source of the flows; see below")
        .field(Choice(&ApplicationKind::NAMES), |flow| &mut flow.application),
    &Flow::named("objects").means("objects of a page; in a list the document first").field(
        Own { read: objects, write: write_objects, allowed: "1 to 10000, or a list of sizes" },
        |flow| &mut flow.knobs.objects,
    ),
    &Flow::named("object-size")
        .means("mean object size, if `objects` is a number")
        .field(PIECE, |flow| &mut flow.knobs.object_size),
    &Flow::named("sizes").means("distribution of object sizes").field(LAWS, |flow| &mut flow.knobs.sizes),
    &Flow::named("request-size")
        .means("request for an object, or answer to an uploaded one")
        .field(PIECE, |flow| &mut flow.knobs.request_size),
    &Flow::named("connections")
        .means("connections per client; 1 is one persistent connection")
        .field(Whole(1, MAX_CONNECTIONS as u32), |flow| &mut flow.knobs.connections),
    &Flow::named("keep-connections")
        .means("`false`: each page opens a connection of its own")
        .field(Flag, |flow| &mut flow.knobs.keeps_connections),
    &Flow::named("think-time")
        .means("pause between two pages")
        .field(ANY_TIME, |flow| &mut flow.knobs.think_time),
    &Flow::named("on-time")
        .means("on and off times of an on-off source")
        .field(SOME_TIME, |flow| &mut flow.knobs.on_time),
    &Flow::named("off-time")
        .means("on and off times of an on-off source")
        .field(SOME_TIME, |flow| &mut flow.knobs.off_time),
    &Flow::named("times")
        .means("distribution of think, on and off times around these means")
        .field(LAWS, |flow| &mut flow.knobs.times),
    &Flow::named("rate")
        .means(
            "of a video, or of an on-off source while it is on (default: `udp-rate`, or the \
             connection's rate)",
        )
        .described("none; 4 Mbps for a video")
        .field(Given(Rate), |flow| &mut flow.knobs.rate),
    &Flow::named("frame-rate")
        .means("frames of a video per second")
        .field(Whole(1, 1_000), |flow| &mut flow.knobs.frame_rate),
    &Flow::named("play-out-buffer")
        .means("video buffered before playback starts, and after each stall")
        .field(ANY_TIME, |flow| &mut flow.knobs.play_out_buffer),
];

pub(crate) const NAME: Key<Own<String>> = named("name")
    .means("name in results")
    .described("the application")
    .key(Own { read: title, write: String::clone, allowed: "as at the top" });

pub(crate) const CLIENT: Key<Own<Option<Vec<u32>>>> =
    named("client").means("clients with this flow; a run of fewer clients lacks it").is("\"all\"").key(Own {
        read: client_numbers,
        write: |clients| format!("{clients:?}"),
        allowed: "`\"all\"`, the number of a client from 1, or a list of them",
    });

pub(crate) const START: Key<Span> =
    named("start").means("start time").described("when its client starts").key(ANY_TIME);

pub(crate) const STOP: Key<Span> = named("stop")
    .means("time from which the source offers no more data")
    .described("when its client stops")
    .key(ANY_TIME);

/// The controllers that every transport supports, with default options.
pub(crate) const CONGESTION: Key<Choice<Algorithm>> = named("congestion")
    .means("congestion control of this flow's connections; no scheme changes it")
    .described("`tcp.congestion` or `tack.congestion`")
    .key(Choice(&CONTROLS));

/// Keys of `[[flow]]` in addition to those of `[traffic]`.
pub(super) const FLOW: Keys<()> = &[&NAME, &CLIENT, &START, &STOP, &CONGESTION];

fn saturating_or_rate(value: &Value) -> Result<Option<BitRate>, Mismatch> {
    match value {
        Value::Text(text) if text == "saturating" => Ok(None),
        other => Rate.read(other).map(Some).map_err(|mismatch| or(mismatch, "\"saturating\"")),
    }
}

fn write_rate(rate: &Option<BitRate>) -> String {
    rate.as_ref().map_or_else(|| "\"saturating\"".to_owned(), |rate| Rate.write(rate))
}

/// A duration, or a number of datagrams.
fn time_or_datagrams(value: &Value) -> Result<ReportAfter, Mismatch> {
    let most = MAX_DATAGRAMS_PER_REPORT;
    if let Value::Text(text) = value
        && let Some(count) = text.trim().strip_suffix("datagrams").or(text.trim().strip_suffix("datagram"))
    {
        let count = count.trim().parse().ok().filter(|count| (1..=most).contains(count));
        return count.map(ReportAfter::Datagrams).ok_or_else(|| {
            Mismatch::new(format!("{value} is out of range"), format!("1 to {most} datagrams"))
        });
    }
    let also = "a number of datagrams such as \"4 datagrams\"";
    HOST_TIME.read(value).map(ReportAfter::Time).map_err(|mismatch| or(mismatch, also))
}

/// The number of objects, or a list of their sizes.
fn objects(value: &Value) -> Result<ObjectsPlan, Mismatch> {
    let Value::List(items) = value else {
        let count = integer(1..=MAX_OBJECTS)(value).map(ObjectsPlan::Count);
        return count.map_err(|mismatch| or(mismatch, "a list of sizes"));
    };
    if items.is_empty() || items.len() > MAX_OBJECTS as usize {
        return Err(Mismatch::new(
            format!("{} sizes", items.len()),
            format!("1 to {MAX_OBJECTS} sizes, such as [\"10 kB\", \"50 kB\"]"),
        ));
    }
    let sizes: Result<Vec<Bytes>, Mismatch> = items.iter().map(|item| PIECE.read(&item.value)).collect();
    sizes.map(ObjectsPlan::Sizes)
}

fn write_objects(objects: &ObjectsPlan) -> String {
    match objects {
        ObjectsPlan::Count(count) => count.to_string(),
        ObjectsPlan::Sizes(sizes) => {
            format!("[{}]", sizes.iter().map(|size| PIECE.write(size)).collect::<Vec<_>>().join(", "))
        }
    }
}

/// The number of a client, counted from 1.
fn client_number(value: &Value) -> Result<u32, Mismatch> {
    integer(1..=MAX_CLIENTS)(value).map(|number| number - 1)
}

/// `"all"`, the number of a client, or a list of numbers, counted from 1.
fn client_numbers(value: &Value) -> Result<Option<Vec<u32>>, Mismatch> {
    let wrong = |mut mismatch: Mismatch| {
        mismatch.allowed.push_str(", a list of these, or \"all\"");
        mismatch
    };
    match value {
        Value::Text(text) if text == "all" => Ok(None),
        Value::List(items) if !items.is_empty() => items
            .iter()
            .map(|item| client_number(&item.value))
            .collect::<Result<_, _>>()
            .map(Some)
            .map_err(wrong),
        other => client_number(other).map(|number| Some(vec![number])).map_err(wrong),
    }
}
