//! `[[client]]`.

use super::kind::{ANY_TIME, Choice, Flag, Given, Own, Whole};
use super::{Field, Key, Keys, Usual, wifi};
use crate::input::{Mismatch, Value, integer};
use crate::{ClientOverride, MAX_CLIENTS, signal};
use tacit_link::wifi::{AccessCategory, Position};

pub(crate) const HACK: &str = "hack";

type Client<K> = Field<ClientOverride, K>;

/// What any client may say.
pub(crate) const CLIENT: Keys<ClientOverride> = &[
    &COUNT,
    &Client {
        name: "start",
        kind: Given(ANY_TIME),
        usual: Usual::Said("`stagger` times its place"),
        meaning: "when its flows start",
        of: |client| &mut client.start,
    },
    &Client {
        name: "stop",
        kind: Given(ANY_TIME),
        usual: Usual::Said("none"),
        meaning: "when its sources stop offering data",
        of: |client| &mut client.stop,
    },
];

pub(crate) const ACCESS_CATEGORY: Key<Choice<AccessCategory>> = Key {
    usual: Usual::Said("as in `[traffic]`"),
    meaning: "EDCA access category of this client's packets",
    ..super::traffic::ACCESS_CATEGORY
};

pub(crate) const COUNT: Key<Whole> = Key {
    name: "count",
    kind: Whole(1, MAX_CLIENTS),
    usual: Usual::Is("1"),
    meaning: "how many clients in a row are like this; each has its own number, which `hidden-from` means",
};

/// What a client behind Wi-Fi may say.
pub(crate) const WIRELESS: Keys<ClientOverride> = &[
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
            read: signal::position,
            write: |at| format!("[\"{} m\", \"{} m\"]", at.x_m, at.y_m),
            allowed: "`[\"30 m\", \"-4 m\"]`",
        }),
        usual: Usual::Said("none"),
        meaning: "where it stands, metres east and north of the access point: also its `distance`, unless `snr` or \
                  `distance` says otherwise; two clients with positions between which less than `carrier-sense` \
                  arrives do not hear each other",
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
        meaning: "clients that it does not hear and that do not hear it, so that they send over each other; everybody \
                  hears the access point",
        of: |client| &mut client.hidden_from,
    },
    &Client {
        name: wifi::LINK_ACKS,
        kind: Given(wifi::LINK_ACK_CHOICE),
        usual: Usual::Said("as in `[wifi]`"),
        meaning: "what `[wifi]` says, for this client; without link-layer ACKs in one direction it speaks no TCP/HACK, \
                  and takes no reverse direction grants",
        of: |client| &mut client.link_acks,
    },
    &Client {
        name: HACK,
        kind: Given(Flag),
        usual: Usual::Said("true, where all its data is acknowledged"),
        meaning: "whether this client speaks TCP/HACK where others do",
        of: |client| &mut client.hack,
    },
    &Client {
        name: "leave",
        kind: Given(ANY_TIME),
        usual: Usual::Said("none"),
        meaning: "when it goes out of reach of the access point; without a word, as one walks away",
        of: |client| &mut client.leave,
    },
    &Client {
        name: "back",
        kind: Given(ANY_TIME),
        usual: Usual::Said("the end of the run"),
        meaning: "when it comes back: later than `leave`",
        of: |client| &mut client.back,
    },
];

/// Numbers of clients, counted from 1 where users write them.
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
