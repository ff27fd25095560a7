//! `[[client]]`.

use super::edca::{Of, OfClient};
use super::kind::{ANY_TIME, Choice, Distance, Flag, Given, Own, Whole};
use super::{Field, Key, Keys, Usual, wifi};
use crate::input::{Mismatch, Node, Value, integer, metres};
use crate::{ClientOverride, MAX_CLIENTS};
use tacit_link::wifi::{AccessCategory, Position};

pub(crate) const HACK: &str = "hack";

type Client<K> = Field<ClientOverride, K>;

/// Keys of every client.
pub(crate) const CLIENT: Keys<ClientOverride> = &[
    &COUNT,
    &Client {
        name: "start",
        kind: Given(ANY_TIME),
        usual: Usual::Described("`stagger` times its place"),
        meaning: "start time of its flows",
        of: |client| &mut client.start,
    },
    &Client {
        name: "stop",
        kind: Given(ANY_TIME),
        usual: Usual::Described("none"),
        meaning: "time from which its sources offer no more data",
        of: |client| &mut client.stop,
    },
];

pub(crate) const ACCESS_CATEGORY: Key<Choice<AccessCategory>> = Key {
    usual: Usual::Described("as in `[traffic]`"),
    meaning: "EDCA access category of this client's packets",
    ..super::traffic::ACCESS_CATEGORY
};

pub(crate) const COUNT: Key<Whole> = Key {
    name: "count",
    kind: Whole(1, MAX_CLIENTS),
    usual: Usual::Is("1"),
    meaning: "number of consecutive clients with these settings; each has its own number, for `hidden-from`",
};

const SELFISH: &str =
    "overrides `[wifi]` for this client's transmissions, as a station that ignores its access point does";

/// Keys of a client on Wi-Fi.
pub(crate) const WIRELESS: Keys<ClientOverride> = &[
    &wifi::client::STANDARD,
    &wifi::client::RATE,
    &wifi::client::MCS,
    &wifi::client::STREAMS,
    &wifi::client::CHANNEL_WIDTH,
    &wifi::client::GUARD_INTERVAL,
    &wifi::client::ACK_RATE,
    &wifi::client::MPDU_ERROR,
    &wifi::client::LINK_ACK_ERROR,
    &wifi::client::SNR,
    &wifi::client::DISTANCE,
    &wifi::client::AP_QUEUE,
    &wifi::client::STATION_QUEUE,
    &ACCESS_CATEGORY,
    &Client {
        name: "position",
        kind: Given(Own::<Position> {
            read: position,
            write: |at| format!("[\"{} m\", \"{} m\"]", at.x_m, at.y_m),
            allowed: "`[\"30 m\", \"-4 m\"]`",
        }),
        usual: Usual::Described("none"),
        meaning: "metres east and north of the access point. It determines `distance`, unless `snr` or `distance` is \
                  given; two clients whose mutual power is below `carrier-sense` do not hear each other",
        of: |client| &mut client.position,
    },
    &Client {
        name: "hidden-from",
        kind: Own {
            read: client_list,
            write: |clients| format!("{:?}", clients.iter().map(|index| index + 1).collect::<Vec<_>>()),
            allowed: "numbers of clients from 1, such as `[2, 3]`",
        },
        usual: Usual::Field,
        meaning: "clients that do not hear this one, and vice versa; all hear the access point",
        of: |client| &mut client.hidden_from,
    },
    &Client {
        name: wifi::CW_MIN,
        kind: OfClient(Of::Window),
        usual: Usual::Described("as in `[wifi]`"),
        meaning: SELFISH,
        of: |client| &mut client.edca.cw_min,
    },
    &Client {
        name: wifi::CW_MAX,
        kind: OfClient(Of::Window),
        usual: Usual::Described("as in `[wifi]`"),
        meaning: SELFISH,
        of: |client| &mut client.edca.cw_max,
    },
    &Client {
        name: wifi::AIFSN,
        kind: OfClient(Of::Aifsn),
        usual: Usual::Described("as in `[wifi]`"),
        meaning: SELFISH,
        of: |client| &mut client.edca.aifsn,
    },
    &Client {
        name: wifi::LINK_ACKS,
        kind: Given(wifi::LINK_ACK_CHOICE),
        usual: Usual::Described("as in `[wifi]`"),
        meaning: "overrides `[wifi]` for this client; without link-layer ACKs in both directions it uses neither \
                  TCP/HACK nor reverse direction grants",
        of: |client| &mut client.link_acks,
    },
    &Client {
        name: HACK,
        kind: Given(Flag),
        usual: Usual::Described("true, where all its data is acknowledged"),
        meaning: "whether this client uses TCP/HACK where others do",
        of: |client| &mut client.hack,
    },
    &super::multi_link::CLIENT_LINKS,
    &super::multi_link::CLIENT_MODE,
    &Client {
        name: "leave",
        kind: Given(ANY_TIME),
        usual: Usual::Described("none"),
        meaning: "time at which it leaves the access point's range, without notice",
        of: |client| &mut client.leave,
    },
    &Client {
        name: "back",
        kind: Given(ANY_TIME),
        usual: Usual::Described("the end of the run"),
        meaning: "time at which it returns, after `leave`",
        of: |client| &mut client.back,
    },
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
