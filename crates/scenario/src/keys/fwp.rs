//! `[fwp]`.

use tacit_proto::fwp::{Config, Placeholders, repair};
use tacit_proto::units::{Bytes, Duration};

use super::kind::{Choice, SOME_TIME, Size, Span, Whole};
use super::{Field, Keys, Usual};
use crate::fwp::{FwpPlan, RepairFrom};

/// Of a scenario that says nothing.
pub(crate) fn usual() -> FwpPlan {
    let (shim, repair) = (Config::USUAL, repair::Config::default());
    FwpPlan {
        repair: None,
        placeholders: shim.placeholders,
        settle: shim.settle,
        margin: shim.margin_tenths / 10,
        holes_max: shim.most_holes,
        hole_octets_max: shim.most_hole_octets,
        patience: shim.patience,
        round_trip: shim.round_trip,
        // With six, as browsers have, repair is what limits a link of 150 Mb/s from 5 % of losses on.
        connections: 16,
        // GET, Host, Range, If-Range and a user agent; status, lengths, type, validator and date: as curl and nginx
        // write them.
        request_size: Bytes(190),
        head_size: Bytes(310),
        range_max: Bytes(repair.request_max),
        gap_max: Bytes(repair.gap_busy_max),
        deadline: repair.deadline,
        // 30 s of video at 17 Mb/s (section V-D of the paper), or 0.85 s at 600 Mb/s.
        reorder_buffer: Bytes(64 << 20),
    }
}

/// Octets of a head: as much as common servers take.
const HEAD: Size = Size(1, 16 << 10);

type Fwp<K> = Field<FwpPlan, K>;

pub(crate) const FWP: Keys<FwpPlan> = &[
    &Fwp {
        name: "repair",
        kind: Choice(&[("none", None), ("server", Some(RepairFrom::Server))]),
        usual: Usual::Field,
        meaning: "who sends again what the Wi-Fi lost of bulk downloads over TCP: TCP's sender; or the server, asked over \
                  HTTP for ranges of the body, while placeholders keep TCP going ([fwp.md](../design/fwp.md)). Goodput is \
                  what the user gets in order. Schemes change it",
        of: |fwp| &mut fwp.repair,
    },
    &Fwp {
        name: "placeholders",
        kind: Choice(&[("tcp", Placeholders::Tcp), ("driver", Placeholders::Driver)]),
        usual: Usual::Field,
        meaning: "who says which holes are the link's: `\"tcp\"`, statistics over TCP's numbers (`margin`); `\"driver\"`, the \
                  802.11 driver, which sees gaps in the numbers of frames: a hole of so many segments is the link's if as \
                  many frames are missing before what came next, and congestion's otherwise. Not with \
                  `wifi.stream-queues = \"independent\"`: a gap shows when its own stream goes on, after others'",
        of: |fwp| &mut fwp.placeholders,
    },
    &Fwp {
        name: "settle",
        kind: Span::up_to(Duration::from_secs(1)),
        usual: Usual::Field,
        meaning: "how long what comes behind a hole waits for reordering before the hole is filled",
        of: |fwp| &mut fwp.settle,
    },
    &Fwp {
        name: "margin",
        kind: Whole(0, 10),
        usual: Usual::Field,
        meaning: "standard deviations by which the losses of a round trip may exceed what the rate's frame error rate \
                  explains before they count as congestion and TCP sees them; 0 is the paper's plain comparison",
        of: |fwp| &mut fwp.margin,
    },
    &Fwp {
        name: "holes-max",
        kind: Whole(1, 1 << 20),
        usual: Usual::Field,
        meaning: "holes of a flow that nobody has repaired; further ones are left to TCP",
        of: |fwp| &mut fwp.holes_max,
    },
    &Fwp {
        name: "hole-octets-max",
        kind: Size(1, 1 << 40),
        usual: Usual::Field,
        meaning: "octets in those",
        of: |fwp| &mut fwp.hole_octets_max,
    },
    &Fwp {
        name: "patience",
        kind: SOME_TIME,
        usual: Usual::Field,
        meaning: "after so long a hole no longer counts among those",
        of: |fwp| &mut fwp.patience,
    },
    &Fwp {
        name: "round-trip",
        kind: SOME_TIME,
        usual: Usual::Field,
        meaning: "losses are counted over a round trip; this one, while timestamps have shown none",
        of: |fwp| &mut fwp.round_trip,
    },
    &Fwp {
        name: "connections",
        kind: Whole(1, 64),
        usual: Usual::Field,
        meaning: "connections per download that bring what is asked for again; they are opened at its start and kept",
        of: |fwp| &mut fwp.connections,
    },
    &Fwp {
        name: "request-size",
        kind: HEAD,
        usual: Usual::Field,
        meaning: "octets of a request",
        of: |fwp| &mut fwp.request_size,
    },
    &Fwp {
        name: "head-size",
        kind: HEAD,
        usual: Usual::Field,
        meaning: "octets of the head of an answer",
        of: |fwp| &mut fwp.head_size,
    },
    &Fwp {
        name: "range-max",
        kind: Size(1, 1 << 30),
        usual: Usual::Field,
        meaning: "octets asked for at once",
        of: |fwp| &mut fwp.range_max,
    },
    &Fwp {
        name: "gap-max",
        kind: Size(1, 1 << 20),
        usual: Usual::Field,
        meaning: "octets between two holes that are asked for again with them, while there are more holes than \
                  connections: fewer requests, more octets",
        of: |fwp| &mut fwp.gap_max,
    },
    &Fwp {
        name: "deadline",
        kind: SOME_TIME,
        usual: Usual::Field,
        meaning: "how long a hole may stay open before the download is given up",
        of: |fwp| &mut fwp.deadline,
    },
    &Fwp {
        name: "reorder-buffer",
        kind: Size(1 << 16, 1 << 40),
        usual: Usual::Field,
        meaning: "octets that may wait behind holes; TCP's window closes beyond",
        of: |fwp| &mut fwp.reorder_buffer,
    },
];
