//! `[fwp]`.

use tacit_proto::fwp::{Config, Placeholders, repair};
use tacit_proto::units::{Bytes, Duration};

use super::kind::{Choice, Given, SOME_TIME, Share, Size, Span, Whole};
use super::{Field, Keys, Usual};
use crate::fwp::{FwpPlan, RepairFrom};

/// The defaults.
pub(crate) fn usual() -> FwpPlan {
    let (shim, repair) = (Config::USUAL, repair::Config::default());
    FwpPlan {
        repair: None,
        placeholders: shim.placeholders,
        expected_loss: None,
        settle: shim.settle,
        margin: shim.margin_tenths / 10,
        overdue: shim.overdue_percent,
        holes_max: shim.most_holes,
        hole_bytes_max: shim.most_hole_bytes,
        patience: shim.patience,
        round_trip: shim.round_trip,
        // With six, which is what browsers use, repair limits a link of 150 Mb/s if 5 % or more are lost.
        connections: 16,
        // Headers as curl and nginx write them: GET, Host, Range, If-Range and a user agent in the request; status,
        // lengths, type, validator and date in the response.
        request_size: Bytes(190),
        head_size: Bytes(310),
        range_max: Bytes(repair.request_max),
        gap_max: Bytes(repair.gap_busy_max),
        deadline: repair.deadline,
        // 30 s of video at 17 Mb/s (section V-D of the paper), or 0.85 s at 600 Mb/s.
        reorder_buffer: Bytes(64 << 20),
    }
}

/// Range of the length of a head. The maximum is what common servers accept.
const HEAD: Size = Size(1, 16 << 10);

type Fwp<K> = Field<FwpPlan, K>;

pub(crate) const FWP: Keys<FwpPlan> = &[
    &Fwp {
        name: "repair",
        kind: Choice(&[("none", None), ("server", Some(RepairFrom::Server))]),
        usual: Usual::Field,
        meaning: "sender of the repairs of TCP downloads, pages and videos: `none`, TCP itself; `server`, by HTTP range requests, \
                  while placeholders keep TCP going ([fwp.md](../design/fwp.md)). Goodput is what the user gets in \
                  order. Schemes change it",
        of: |fwp| &mut fwp.repair,
    },
    &Fwp {
        name: "placeholders",
        kind: Choice(&[("tcp", Placeholders::Tcp), ("driver", Placeholders::Driver)]),
        usual: Usual::Described(
            "\"driver\"; \"tcp\" with `wifi.stream-queues = \"independent\"`, where it has to be",
        ),
        meaning: "how the link's holes are distinguished from congestion: `\"driver\"`, by gaps in frame numbers: a hole of \
                  *n* segments is the link's if at least *n* frames are missing before the next arrival; `\"tcp\"`, by \
                  loss statistics (`expected-loss`, `margin`), as in the paper",
        of: |fwp| &mut fwp.placeholders,
    },
    &Fwp {
        name: "expected-loss",
        kind: Given(Share),
        usual: Usual::Described("the frames that the driver misses in the same round trip"),
        meaning: "losses of the link that `placeholders = \"tcp\"` expects; the paper takes the frame error rate of the \
                  current MCS",
        of: |fwp| &mut fwp.expected_loss,
    },
    &Fwp {
        name: "settle",
        kind: Span::up_to(Duration::from_secs(1)),
        usual: Usual::Field,
        meaning: "time that data behind a hole waits for reordering before the hole is filled",
        of: |fwp| &mut fwp.settle,
    },
    &Fwp {
        name: "margin",
        kind: Whole(0, 10),
        usual: Usual::Field,
        meaning: "standard deviations by which the losses of a round trip may exceed `expected-loss` before \
                  they count as congestion; 0 is the paper's comparison",
        of: |fwp| &mut fwp.margin,
    },
    &Fwp {
        name: "overdue",
        kind: Whole(0, 10_000),
        usual: Usual::Field,
        meaning: "age, in percent of the flow's smoothed round trip, at which a hole left to TCP is filled with a \
                  placeholder after all, if later data has overtaken its retransmission; 0 is never",
        of: |fwp| &mut fwp.overdue,
    },
    &Fwp {
        name: "holes-max",
        kind: Whole(1, 1 << 20),
        usual: Usual::Field,
        meaning: "largest number of unrepaired holes per flow; further ones are left to TCP",
        of: |fwp| &mut fwp.holes_max,
    },
    &Fwp {
        name: "hole-bytes-max",
        kind: Size(1, 1 << 40),
        usual: Usual::Field,
        meaning: "largest number of bytes in unrepaired holes per flow",
        of: |fwp| &mut fwp.hole_bytes_max,
    },
    &Fwp {
        name: "patience",
        kind: SOME_TIME,
        usual: Usual::Field,
        meaning: "age after which a hole no longer counts as unrepaired",
        of: |fwp| &mut fwp.patience,
    },
    &Fwp {
        name: "round-trip",
        kind: SOME_TIME,
        usual: Usual::Field,
        meaning: "interval for counting losses before timestamps have shown a round trip",
        of: |fwp| &mut fwp.round_trip,
    },
    &Fwp {
        name: "connections",
        kind: Whole(1, 64),
        usual: Usual::Field,
        meaning: "repair connections per download, and per connection of a page or video, opened at its start and kept",
        of: |fwp| &mut fwp.connections,
    },
    &Fwp {
        name: "request-size",
        kind: HEAD,
        usual: Usual::Field,
        meaning: "size of a request",
        of: |fwp| &mut fwp.request_size,
    },
    &Fwp {
        name: "head-size",
        kind: HEAD,
        usual: Usual::Field,
        meaning: "size of an answer's head",
        of: |fwp| &mut fwp.head_size,
    },
    &Fwp {
        name: "range-max",
        kind: Size(1, 1 << 30),
        usual: Usual::Field,
        meaning: "most bytes of one request",
        of: |fwp| &mut fwp.range_max,
    },
    &Fwp {
        name: "gap-max",
        kind: Size(1, 1 << 20),
        usual: Usual::Field,
        meaning: "largest gap between two holes that are requested as one range, while there are more holes than \
                  connections: fewer requests, more bytes",
        of: |fwp| &mut fwp.gap_max,
    },
    &Fwp {
        name: "deadline",
        kind: SOME_TIME,
        usual: Usual::Field,
        meaning: "age of a hole at which the download fails",
        of: |fwp| &mut fwp.deadline,
    },
    &Fwp {
        name: "reorder-buffer",
        kind: Size(1 << 16, 1 << 40),
        usual: Usual::Field,
        meaning: "most bytes that wait behind holes; beyond that, TCP's window closes",
        of: |fwp| &mut fwp.reorder_buffer,
    },
];
