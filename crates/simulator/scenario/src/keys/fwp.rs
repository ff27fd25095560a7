//! `[fwp]`.

use tacit_between::fwp::{Config, Placeholders, repair};
use tacit_packet::units::{Bytes, Duration};

use super::entry::{About, Keys};
use super::kind::{Choice, Given, SOME_TIME, Share, Size, Span, Whole};
use crate::fwp::{FwpPlan, RepairFrom};

/// The defaults.
pub(crate) fn usual() -> FwpPlan {
    let (shim, repair) = (Config::USUAL, repair::Config::default());
    FwpPlan {
        repair: None,
        expected_loss: None,
        margin: shim.margin_tenths / 10,
        shim,
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

type Fwp = About<FwpPlan>;

pub(crate) const FWP: Keys<FwpPlan> = &[
    &Fwp::named("repair")
        .means(
            "who repairs downloads, pages and videos: TCP; the server, by HTTP range requests. \
             Schemes change it",
        )
        .field(Choice(&[("none", None), ("server", Some(RepairFrom::Server))]), |fwp| &mut fwp.repair),
    &Fwp::named("placeholders")
        .means(
            "what tells the link's holes from congestion: loss statistics (`expected-loss`, \
             `margin`), as in the paper; gaps in frame numbers",
        )
        .described("\"driver\"; \"tcp\" with `wifi.stream-queues = \"independent\"`, where it has to be")
        .field(Choice(&[("tcp", Placeholders::Tcp), ("driver", Placeholders::Driver)]), |fwp| {
            &mut fwp.shim.placeholders
        }),
    &Fwp::named("expected-loss")
        .means("losses of the link that `placeholders = \"tcp\"` expects")
        .described("the frames that the driver misses in the same round trip")
        .field(Given(Share), |fwp| &mut fwp.expected_loss),
    &Fwp::named("settle")
        .means("time before a hole is filled")
        .field(Span::up_to(Duration::from_secs(1)), |fwp| &mut fwp.shim.settle),
    &Fwp::named("margin")
        .means("standard deviations by which losses may exceed `expected-loss`; 0 is the paper's comparison")
        .field(Whole(0, 10), |fwp| &mut fwp.margin),
    &Fwp::named("overdue")
        .means("age, in percent of the round trip, at which a hole left to TCP is filled; 0 is never")
        .field(Whole(0, 10_000), |fwp| &mut fwp.shim.overdue_percent),
    &Fwp::named("holes-max")
        .means("most unrepaired holes per flow; further ones are left to TCP")
        .field(Whole(1, 1 << 20), |fwp| &mut fwp.shim.most_holes),
    &Fwp::named("hole-bytes-max")
        .means("most bytes in unrepaired holes per flow")
        .field(Size(1, 1 << 40), |fwp| &mut fwp.shim.most_hole_bytes),
    &Fwp::named("patience")
        .means("age after which a hole no longer counts as unrepaired")
        .field(SOME_TIME, |fwp| &mut fwp.shim.patience),
    &Fwp::named("round-trip")
        .means("interval for counting losses before timestamps have shown a round trip")
        .field(SOME_TIME, |fwp| &mut fwp.shim.round_trip),
    &Fwp::named("connections")
        .means("repair connections of a download, or of a page's or video's connection")
        .field(Whole(1, 64), |fwp| &mut fwp.connections),
    &Fwp::named("request-size").means("size of a request").field(HEAD, |fwp| &mut fwp.request_size),
    &Fwp::named("head-size").means("size of an answer's head").field(HEAD, |fwp| &mut fwp.head_size),
    &Fwp::named("range-max")
        .means("most bytes of one request")
        .field(Size(1, 1 << 30), |fwp| &mut fwp.range_max),
    &Fwp::named("gap-max")
        .means("largest gap between two holes that are requested as one range")
        .field(Size(1, 1 << 20), |fwp| &mut fwp.gap_max),
    &Fwp::named("deadline")
        .means("age of a hole at which the download fails")
        .field(SOME_TIME, |fwp| &mut fwp.deadline),
    &Fwp::named("reorder-buffer")
        .means("most bytes that wait behind holes")
        .field(Size(1 << 16, 1 << 40), |fwp| &mut fwp.reorder_buffer),
];
