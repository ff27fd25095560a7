//! `[[client]]`.

use super::edca::{Of, OfClient};
use super::entry::{About, Key, Keys, TextKey, Usual, named};
use super::kind::{ANY_TIME, Choice, Distance, Flag, Given, Own, Whole};
use super::wifi;
use crate::input::{Mismatch, Node, Value, integer, metres};
use crate::{ClientOverride, MAX_CLIENTS};
use tacit_link::wifi::phy::Standard;
use tacit_link::wifi::{AccessCategory, Position};

pub(crate) const HACK: &str = "hack";

type Client = About<ClientOverride>;

/// Keys of every client.
pub(crate) const CLIENT: Keys<ClientOverride> = &[
    &COUNT,
    &Client::named("start")
        .means("start time of its flows")
        .described("`stagger` times its place")
        .field(Given(ANY_TIME), |client| &mut client.start),
    &Client::named("stop")
        .means("time from which its sources offer no more data")
        .described("none")
        .field(Given(ANY_TIME), |client| &mut client.stop),
];

pub(crate) const ACCESS_CATEGORY: Key<Choice<AccessCategory>> = Key {
    usual: Usual::Described("as in `[traffic]`"),
    meaning: "EDCA access category of this client's packets",
    ..super::traffic::ACCESS_CATEGORY
};

pub(crate) const COUNT: Key<Whole> =
    named("count").means("consecutive clients with these settings").is("1").key(Whole(1, MAX_CLIENTS));

pub(crate) const STANDARD: Key<Own<Standard>> = Key {
    usual: Usual::Described("as in `[wifi]`"),
    meaning: "amendment of this client, 802.11n up to that of `[wifi]`, in the same band; with \
               a `rate` or `mcs` of its own",
    ..wifi::STANDARD
};

/// The key that overrides the key of this name in `[wifi]` and allows the same values.
const fn as_in_wifi(name: &'static str, meaning: &'static str) -> TextKey {
    named(name).means(meaning).described("as in `[wifi]`").text("as in `[wifi]`")
}

const RATE: &str = "rate of data frames to and from this client, chosen without the keys of `[wifi]`";
const FOR_THIS: &str = "overrides `[wifi]` for this client";
const SELFISH: &str = "overrides `[wifi]` for this client's transmissions";

/// Keys of a client on Wi-Fi.
pub(crate) const WIRELESS: Keys<ClientOverride> = &[
    &STANDARD,
    &as_in_wifi(wifi::RATE.name, RATE),
    &as_in_wifi(wifi::MCS.name, RATE),
    &as_in_wifi(wifi::STREAMS.name, RATE),
    &as_in_wifi(wifi::CHANNEL_WIDTH.name, RATE),
    &as_in_wifi(wifi::GUARD_INTERVAL.name, RATE),
    &as_in_wifi(wifi::ACK_RATE.name, FOR_THIS),
    &as_in_wifi(wifi::MPDU_ERROR.name, FOR_THIS),
    &as_in_wifi(wifi::LINK_ACK_ERROR.name, FOR_THIS),
    &as_in_wifi(wifi::SNR.name, FOR_THIS),
    &as_in_wifi(wifi::DISTANCE.name, FOR_THIS),
    &as_in_wifi(wifi::AP_QUEUE.name, FOR_THIS),
    &as_in_wifi(wifi::STATION_QUEUE.name, FOR_THIS),
    &ACCESS_CATEGORY,
    &Client::named("position")
        .means("east and north of the access point, for `distance` and `carrier-sense`")
        .described("none")
        .field(
            Given(Own::<Position> {
                read: position,
                write: |at| format!("[\"{} m\", \"{} m\"]", at.x_m, at.y_m),
                allowed: "`[\"30 m\", \"-4 m\"]`",
            }),
            |client| &mut client.position,
        ),
    &Client::named("hidden-from").means("clients that do not hear this one, and vice versa").field(
        Own {
            read: client_list,
            write: |clients| format!("{:?}", clients.iter().map(|index| index + 1).collect::<Vec<_>>()),
            allowed: "numbers of clients from 1, such as `[2, 3]`",
        },
        |client| &mut client.hidden_from,
    ),
    &Client::named(wifi::CW_MIN)
        .means(SELFISH)
        .described("as in `[wifi]`")
        .field(OfClient(Of::Window), |client| &mut client.edca.cw_min),
    &Client::named(wifi::CW_MAX)
        .means(SELFISH)
        .described("as in `[wifi]`")
        .field(OfClient(Of::Window), |client| &mut client.edca.cw_max),
    &Client::named(wifi::AIFSN)
        .means(SELFISH)
        .described("as in `[wifi]`")
        .field(OfClient(Of::Aifsn), |client| &mut client.edca.aifsn),
    &Client::named(wifi::LINK_ACKS)
        .means("overrides `[wifi]` for this client")
        .described("as in `[wifi]`")
        .field(Given(wifi::LINK_ACK_CHOICE), |client| &mut client.link_acks),
    &Client::named(HACK)
        .means("whether this client uses TCP/HACK where others do")
        .described("true, where all its data is acknowledged")
        .field(Given(Flag), |client| &mut client.hack),
    &super::multi_link::CLIENT_LINKS,
    &super::multi_link::CLIENT_MODE,
    &Client::named("leave")
        .means("when it leaves the access point's range")
        .described("none")
        .field(Given(ANY_TIME), |client| &mut client.leave),
    &Client::named("back")
        .means("when it returns")
        .described("the end of the run")
        .field(Given(ANY_TIME), |client| &mut client.back),
];

/// Numbers of clients, which users count from 1.
fn client_list(value: &Value) -> Result<Vec<u32>, Mismatch> {
    let wrong = || {
        Mismatch::new(
            format!("{value} is no list of clients"),
            format!("numbers from 1 to {MAX_CLIENTS}, such as [2, 3]"),
        )
    };
    let Value::List(items) = value else { return Err(wrong()) };
    let one = integer(1..=MAX_CLIENTS);
    items.iter().map(|item| one(&item.value).map(|number| number - 1).map_err(|_| wrong())).collect()
}

/// A position in metres to the east and to the north of the access point.
fn position(value: &Value) -> Result<Position, Mismatch> {
    let wrong =
        || Mismatch::new(format!("{value} is not a position"), "[\"3 m\", \"-4 m\"], up to 100 km away");
    let Value::List(items) = value else { return Err(wrong()) };
    let [x, y] = items.as_slice() else { return Err(wrong()) };
    let coordinate = |item: &Node| match &item.value {
        Value::Text(text) if text.trim().starts_with('-') => {
            metres(&Value::Text(text.trim()[1..].to_owned())).map(|x| -x)
        }
        other => metres(other),
    };
    let position =
        Position { x_m: coordinate(x).map_err(|_| wrong())?, y_m: coordinate(y).map_err(|_| wrong())? };
    let distance_m = position.distance_m(&Position::default());
    if Distance::METRES.contains(&distance_m) { Ok(position) } else { Err(wrong()) }
}
