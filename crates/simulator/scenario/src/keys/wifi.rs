//! `[wifi]`.

use tacit_link::wifi::phy::{
    Band, Coding, GuardInterval, Mode, PacketExtension, Preamble, SlotTime, Standard, TrainingField,
};
use tacit_link::wifi::{
    AmsduLimit, ApScheduler, BothWays, BssConfig, Bursts, Eifs, LinkAcks, MuAcknowledgment, MuEdca,
    OfdmaConfig, Protection, Sharing, StreamQueues, Triggers, TxopLimits,
};
use tacit_packet::units::{BitRate, Bytes, Duration};

use super::edca::{Of, OfRoles};
use super::entry::{About, Key, Keys, TextKey, named};
use super::kind::{
    Choice, Distance, Flag, Kind as _, Losses, Number, OnceFlag, OrNone, Own, Power, PowerRatio, SOME_TIME,
    Size, Span, Whole,
};
use crate::direct;
use crate::input::{Mismatch, Value, byte_count, duration, standard};
use crate::{ApAcks, Categories, RateChoice, Wifi, WifiAckFilter};

/// The defaults shown in explanations and on the page, which are those of 802.11n.
pub(super) fn usual() -> Wifi {
    let mode = Mode::for_rate(Standard::N, BitRate::from_mbps(150)).expect("802.11n has this rate");
    Wifi::new(BssConfig::new(Standard::N, Vec::new()), mode)
}

pub(crate) const STANDARD: Key<Own<Standard>> = named("standard").means(
        "the amendment; 802.11b and g at 2.4 GHz, be at 6 GHz, others at 5 GHz (`band`)",
    ).described("required").key(Own {
        read: standard,
        write: |standard| super::kind::quoted(standard.name()),
        allowed: "`\"802.11a\"`, `\"802.11b\"`, `\"802.11g\"`, `\"802.11n\"`, `\"802.11ac\"`, `\"802.11ax\"`, `\"802.11be\"`; \
                  also as `\"11ax\"` or `\"wifi6\"`",
    });

pub(crate) const BAND: Key<Choice<Band>> = named("band")
    .means("2.4 GHz: times as 802.11g, up to 40 MHz; 6 GHz: times of 5 GHz, no older clients, 320 MHz")
    .described("of the standard; `\"5 GHz\"` for 802.11n and ax, `\"6 GHz\"` for be")
    .key(Choice(&[
        (Band::Ghz2_4.name(), Band::Ghz2_4),
        (Band::Ghz5.name(), Band::Ghz5),
        (Band::Ghz6.name(), Band::Ghz6),
    ]));

pub(crate) const RATE: TextKey = named("rate")
    .means("rate of data frames, both ways; see [rates](#rates)")
    .described("required, unless `mcs` is given")
    .text("a rate of its table, or `\"ideal\"`");

pub(crate) const MCS: Key<Whole> = named("mcs")
    .means("with the next three keys selects a mode, with `rate` or in place of it")
    .optional()
    .key(Whole(0, 31));

pub(crate) const STREAMS: Key<Whole> =
    named("streams").means("spatial streams; up to 4 before 802.11ax").optional().key(Whole(1, 8));

pub(crate) const CHANNEL_WIDTH: Key<Choice<u16>> = named("channel-width")
    .means("width of the channel")
    .optional()
    .key(Choice(&[("20 MHz", 20), ("40 MHz", 40), ("80 MHz", 80), ("160 MHz", 160), ("320 MHz", 320)]));

pub(crate) const GUARD_INTERVAL: Key<Choice<GuardInterval>> = named("guard-interval")
    .means("0.4 or 0.8 us between symbols; 0.8 (`long`), 1.6 or 3.2 us from 802.11ax on")
    .optional()
    .key(Choice(&[
        (GuardInterval::Ns400.name(), GuardInterval::Ns400),
        (GuardInterval::Ns800.name(), GuardInterval::Ns800),
        (GuardInterval::Ns1600.name(), GuardInterval::Ns1600),
        (GuardInterval::Ns3200.name(), GuardInterval::Ns3200),
    ]));

pub(crate) const LTF: Key<Choice<TrainingField>> = named("ltf")
    .means(
        "training field of a stream: 3.2, 6.4 or 12.8 us and a guard interval: of `1x` 0.8 us and \
         not with EHT, `2x` 0.8 and 1.6, `4x` 0.8 and 3.2; 802.11ax and be",
    )
    .described("`\"2x\"`; `\"4x\"` with `guard-interval = \"3.2 us\"`")
    .key(Choice(&[
        (TrainingField::Quarter.name(), TrainingField::Quarter),
        (TrainingField::Half.name(), TrainingField::Half),
        (TrainingField::Whole.name(), TrainingField::Whole),
    ]));

pub(crate) const PACKET_EXTENSION: Key<Choice<PacketExtension>> = named("packet-extension")
    .means("at most; up to 12 us less where the last symbol is not full; 20 us with 802.11be only")
    .described("`\"16 us\"` with 802.11ax and be")
    .key(Choice(&[
        ("0 us", PacketExtension::Us0),
        ("8 us", PacketExtension::Us8),
        ("16 us", PacketExtension::Us16),
        ("20 us", PacketExtension::Us20),
    ]));

pub(crate) const CODING: Key<Choice<Coding>> = named("coding")
    .means("code of the data field; `bcc` as simulators without LDPC")
    .described("`\"ldpc\"` with 802.11ax and be")
    .key(Choice(&[("ldpc", Coding::Ldpc), ("bcc", Coding::Bcc)]));

pub(crate) const PREAMBLE: Key<Choice<Preamble>> = named("preamble")
    .means("of DSSS frames: 192 or 96 us; at 2.4 GHz")
    .is("\"long\"")
    .key(Choice(&[("long", Preamble::Long), ("short", Preamble::Short)]));

pub(crate) const SLOT: Key<Choice<SlotTime>> = named("slot")
    .means("9 or 20 us; 802.11g, and n at 2.4 GHz")
    .is("\"short\"")
    .key(Choice(&[("short", SlotTime::Short), ("long", SlotTime::Long)]));

pub(crate) const B_STATIONS: Key<Flag> = named("b-stations")
    .means(
        "an 802.11b station is near (802.11g, and n at 2.4 GHz): its basic rates, beacons at 1 \
         Mb/s, by default long slots and `cts-to-self`",
    )
    .is("false")
    .key(Flag);

/// The values do not include the threshold.
pub(crate) const PROTECTION: Key<Choice<Protection>> = named("protection")
    .means(
        "frames sent before data PPDUs; with `b-stations` at 11 Mb/s DSSS, else at the rate of control \
         responses",
    )
    .is("\"none\"")
    .key(Choice(&[
        ("none", Protection::None),
        ("cts-to-self", Protection::CtsToSelf { above: 0 }),
        ("rts-cts", Protection::RtsCts { above: 0 }),
    ]));

pub(crate) const RTS_THRESHOLD: Key<OrNone<Size>> = named("rts-threshold")
    .means("protects only PSDUs longer than this; alone it implies `rts-cts`")
    .is("\"none\"")
    .key(OrNone(Size(0, 1 << 20)));

pub(crate) const ACK_RATE: TextKey = named("ack-rate")
    .means("rate of link-layer ACKs; `auto` follows the standard's rule")
    .is("\"auto\"")
    .text("`\"auto\"`; 6, 9, 12, 18, 24, 36, 48, 54 Mbps; 1, 2, 5.5, 11 Mbps at 2.4 GHz");

pub(crate) const MPDU_ERROR: TextKey = named("mpdu-error")
    .means("loss process of data MPDUs, besides collisions")
    .described("none")
    .text("a loss, or `{ down = …, up = … }`");

pub(crate) const LINK_ACK_ERROR: Key<Losses> = named("link-ack-error")
    .means("loss process of ACKs and Block Acks, separate for each direction")
    .described("none")
    .key(Losses);

pub(crate) const SNR: Key<PowerRatio> = named("snr")
    .means("in the channel of `rate`, both ways; see [wifi-model.md](../references/wifi-model.md#noise)")
    .described("no noise")
    .key(PowerRatio(-20_000, 100_000));

pub(crate) const DISTANCE: Key<Distance> = named("distance")
    .means("between access point and client, in place of `snr`")
    .described("no noise")
    .key(Distance);

pub(crate) const DIRECT_SNR: Key<PowerRatio> = named("direct-snr")
    .means("of every direct link, instead of `direct-distance`")
    .described("as `direct-distance`")
    .key(PowerRatio(-20_000, 100_000));

pub(crate) const DIRECT_DISTANCE: Key<Distance> = named("direct-distance")
    .means(
        "of every direct link; one of the two is required where an end has an `snr` or `distance` \
         and not both a `position`",
    )
    .described("of their `position`s")
    .key(Distance);

/// The value is true for models with an exponent.
pub(crate) const PATH_LOSS: Key<Choice<bool>> = named("path-loss")
    .means("path loss model; `friis` is free space")
    .is("\"log-distance\"")
    .key(Choice(&[("log-distance", true), ("friis", false)]));

/// The exponents measured in practice are well within these limits, including those of tunnels and factories.
pub(crate) const PATH_LOSS_EXPONENT: Key<Number> = named("path-loss-exponent")
    .means("exponent beyond the reference distance")
    .is("3")
    .key(Number(1.0..=8.0));

pub(crate) const REFERENCE_DISTANCE: Key<Distance> =
    named("reference-distance").means("distance up to which free space applies").is("\"1 m\"").key(Distance);

pub(crate) const NOISE_FIGURE: Key<PowerRatio> = named("noise-figure")
    .means("noise of receivers, on top of thermal noise")
    .is("\"7 dB\"")
    .key(PowerRatio(0, 40_000));

pub(crate) const TXOP_LIMITS: &str = "txop-limits";
pub(crate) const TXOP_BURSTS: &str = "txop-bursts";
pub(crate) const MPDU_START_SPACING: &str = "mpdu-start-spacing";
pub(crate) const BLOCK_ACK_WINDOW: &str = "block-ack-window";
pub(crate) const AMPDU_MPDUS: &str = "ampdu-mpdus";
pub(crate) const STREAM_QUEUES: &str = "stream-queues";
pub(crate) const AMSDU: &str = "amsdu";
pub(crate) const ACCESS_CATEGORIES: &str = "access-categories";
pub(crate) const CW_MIN: &str = "cw-min";
pub(crate) const CW_MAX: &str = "cw-max";
pub(crate) const AIFSN: &str = "aifsn";
pub(crate) const LINK_ACKS: &str = "link-acks";

/// The directions in which data has link-layer ACKs.
pub(crate) const LINK_ACK_CHOICE: Choice<BothWays<LinkAcks>> = Choice(&[
    ("normal", BothWays::same(LinkAcks::Normal)),
    ("uplink-only", BothWays { down: LinkAcks::None, up: LinkAcks::Normal }),
    ("downlink-only", BothWays { down: LinkAcks::Normal, up: LinkAcks::None }),
    ("none", BothWays::same(LinkAcks::None)),
    ("deferred", BothWays { down: LinkAcks::Deferred, up: LinkAcks::Normal }),
]);

/// The value is true if grants are enabled.
pub(crate) const REVERSE_DIRECTION: Key<Choice<bool>> = named("reverse-direction")
    .means(
        "whether the station that acknowledges a data PPDU may send one in the same TXOP; 802.11n \
         and ac; schemes change it; see \
         [wifi-model.md](../references/wifi-model.md#reverse-direction)",
    )
    .is("\"off\"")
    .key(Choice(&[("off", false), ("granted", true)]));

pub(crate) const REVERSE_TURNAROUND: Key<Span> = named("reverse-turnaround")
    .means("least time in the queue before a packet may join a granted PPDU")
    .is("\"0 us\"")
    .key(Span::up_to(Duration::from_millis(10)));

pub(crate) const REVERSE_LIMIT: Key<Span> = named("reverse-limit")
    .means("length of a grant without a TXOP limit")
    .is("\"3.008 ms\"")
    .key(Span::between(Duration::from_micros(100), Duration::from_millis(30)));

pub(crate) const AP_QUEUE: TextKey =
    named("ap-queue").means("queue per client at the access point").is("\"1000 packets\"").text("a queue");

pub(crate) const STATION_QUEUE: TextKey =
    named("station-queue").means("queue of each client").is("\"1000 packets\"").text("a queue");

type W = About<Wifi>;

pub(crate) const WIFI: Keys<Wifi> = &[
    &STANDARD,
    &BAND,
    &RATE,
    &MCS,
    &STREAMS,
    &CHANNEL_WIDTH,
    &GUARD_INTERVAL,
    &LTF,
    &PACKET_EXTENSION,
    &CODING,
    &PREAMBLE,
    &SLOT,
    &B_STATIONS,
    &PROTECTION,
    &RTS_THRESHOLD,
    &W::named("short-retry-limit")
        .means("consecutive unanswered RTS after which the packets are dropped")
        .field(Whole(0, 255), |wifi| &mut wifi.bss.short_retry_limit),
    &ACK_RATE,
    &MPDU_ERROR,
    &W::named("rate-control")
        .means(
            "`minstrel` adapts to losses; `ideal` has the highest TCP goodput at the client's \
             `snr` or `distance`; both up to width and streams of `rate`; `rate = \"ideal\"` \
             chooses among all modes",
        )
        .field(
            Choice(&[
                ("fixed", RateChoice::Fixed),
                ("ideal", RateChoice::Ideal),
                ("minstrel", RateChoice::Minstrel),
            ]),
            |wifi| &mut wifi.rate_control,
        ),
    &W::named("carrier-sense")
        .means("power from which clients with a `position` hear each other")
        .field(Power(-120.0..=0.0), |wifi| &mut wifi.carrier_sense_dbm),
    &LINK_ACK_ERROR,
    &SNR,
    &DISTANCE,
    &W::named("direct-links")
        .means(
            "with a direct link (TDLS); `all`: those with `station-to-station` traffic; see \
             [wifi-model.md](../references/wifi-model.md#from-client-to-client)",
        )
        .field(
            Own { read: direct::pairs, write: direct::write_pairs, allowed: direct::PAIRS_ALLOWED },
            |wifi| &mut wifi.direct.pairs,
        ),
    &DIRECT_SNR,
    &DIRECT_DISTANCE,
    &PATH_LOSS,
    &PATH_LOSS_EXPONENT,
    &REFERENCE_DISTANCE,
    &W::named("tx-power")
        .means("transmit power of access point and clients")
        .field(Power(-30.0..=60.0), |wifi| &mut wifi.propagation.tx_power_dbm),
    &NOISE_FIGURE,
    &W::named("txop-limit")
        .means("longest exchange (data PPDU, SIFS, acknowledgment), or TXOP, see `txop-bursts`")
        .field(OrNone(Span::between(Duration::from_micros(100), Duration::from_millis(100))), |wifi| {
            &mut wifi.bss.txop_limit
        }),
    &W::named(TXOP_LIMITS)
        .means(
            "video and voice: 3.008 and 1.504 ms (hostapd's defaults); or 4.096 and 2.080 ms, and \
             2.528 ms for best effort and background; 802.11n and ac",
        )
        .field(
            Choice(&[("802.11-2012", TxopLimits::Ieee2012), ("802.11-2020", TxopLimits::Ieee2020)]),
            |wifi| &mut wifi.bss.txop_limits,
        ),
    &W::named(TXOP_BURSTS)
        .means(
            "which TXOPs hold several exchanges: none, those of categories with a limit, or also \
             those of `txop-limit`; with multiple protection frames reserve the rest of these, and \
             a CF-End returns it; 802.11n and later",
        )
        .field(
            Choice(&[
                ("none", Bursts::Never),
                ("categories", Bursts::ByCategory),
                ("all", Bursts::WithinLimit),
                ("multiple-protection", Bursts::MultipleProtection),
            ]),
            |wifi| &mut wifi.bss.bursts,
        ),
    &W::named(AMPDU_MPDUS)
        .means("most MPDUs in an A-MPDU; 1 disables aggregation; at most 64, 256 with 802.11ax, 1024 with be")
        .field(OrNone(Whole(1, 1024)), |wifi| &mut wifi.bss.ampdu_mpdus),
    &W::named(BLOCK_ACK_WINDOW)
        .means("most outstanding MPDUs under a Block Ack agreement, which sets its bitmap; 802.11n and later")
        .described("the most that the standard has: 64, 256 with 802.11ax, 1024 with be")
        .field(Whole(2, 1024), |wifi| &mut wifi.bss.block_ack_window),
    &W::named(STREAM_QUEUES)
        .means(
            "spatial streams carry one aggregate, as in the standard; or one each, with own losses \
             (802.11n and ac, a fixed rate, not with `[hack]` or `ap-acks`); see \
             [fwp-mac.md](../design/fwp-mac.md). Schemes change it",
        )
        .field(
            Choice(&[("joint", StreamQueues::Joint), ("independent", StreamQueues::Independent)]),
            |wifi| &mut wifi.bss.stream_queues,
        ),
    &W::named(MPDU_START_SPACING)
        .means(
            "Minimum MPDU Start Spacing, kept by empty delimiters; many receivers ask for 8 us; \
                 802.11n and ac",
        )
        .field(
            Own {
                read: mpdu_start_spacing,
                write: |spacing| SPACING.write(spacing),
                allowed: SPACINGS_ALLOWED,
            },
            |wifi| &mut wifi.bss.mpdu_start_spacing,
        ),
    &W::named(AMSDU)
        .means("length of MPDUs into which packets are aggregated (A-MSDU); 802.11n and ac")
        .field(
            OrNone(Own {
                read: amsdu_limit,
                write: |limit| format!("\"{} B\"", limit.bytes()),
                allowed: "`\"3839 B\"`, `\"7935 B\"`",
            }),
            |wifi| &mut wifi.bss.amsdu,
        ),
    &W::named(ACCESS_CATEGORIES)
        .means("those of the flows, or all four, to which `tacit shell` maps packets by DSCP (RFC 8325)")
        .field(Choice(&[("used", Categories::Used), ("all", Categories::All)]), |wifi| &mut wifi.categories),
    &W::named(CW_MIN)
        .means(
            "smallest contention window, in slots; see \
             [wifi-model.md](../references/wifi-model.md#contention)",
        )
        .described("of the access category")
        .field(OfRoles(Of::Window), |wifi| &mut wifi.edca.cw_min),
    &W::named(CW_MAX)
        .means("largest contention window, to which failures double it")
        .described("of the access category")
        .field(OfRoles(Of::Window), |wifi| &mut wifi.edca.cw_max),
    &W::named(AIFSN)
        .means("slots after SIFS before the backoff (AIFSN); 802.11n and ac")
        .described("of the access category")
        .field(OfRoles(Of::Aifsn), |wifi| &mut wifi.edca.aifsn),
    &W::named(LINK_ACKS)
        .means(
            "data with link-layer ACKs: all, from clients, to clients, none; `deferred`: from \
             clients, which request missing frames. 802.11n and ac, a fixed rate, not with \
             `[hack]`, `reverse-direction` or `ap-acks`; see [fwp-mac.md](../design/fwp-mac.md). \
             Schemes change it",
        )
        .field(LINK_ACK_CHOICE, |wifi| &mut wifi.link_acks),
    &W::named("repair-buffer")
        .means("with `deferred`: sent bytes kept per recipient, at most 1984 MPDUs")
        .field(Size(0, 1 << 30), |wifi| &mut wifi.bss.repair.buffer),
    &W::named("repair-age")
        .means("with `deferred`: time after which both ends give up a frame")
        .field(SOME_TIME, |wifi| &mut wifi.bss.repair.age),
    &W::named("repair-period")
        .means("with `deferred`: least time between two requests of a client")
        .field(Span::between(Duration::from_micros(100), Duration::from_secs(1)), |wifi| {
            &mut wifi.bss.repair.period
        }),
    &REVERSE_DIRECTION,
    &REVERSE_TURNAROUND,
    &REVERSE_LIMIT,
    &W::named("beacons").means("beacon interval").field(
        Own {
            read: beacons,
            write: |interval| BEACONS.write(interval),
            allowed: "from 1 ms, `\"none\"`, `true`, `false`",
        },
        |wifi| &mut wifi.bss.beacon_interval,
    ),
    &W::named("retry-limit")
        .means("retries of an MPDU, and of a Block Ack Request")
        .field(Whole(0, 255), |wifi| &mut wifi.bss.retry_limit),
    &W::named("lifetime")
        .means("age at which an MPDU is dropped")
        .field(SOME_TIME, |wifi| &mut wifi.bss.lifetime),
    &W::named("reorder-timeout")
        .means("time that a recipient waits for a missing MPDU")
        .field(SOME_TIME, |wifi| &mut wifi.bss.reorder_timeout),
    &W::named("link-ack-delay")
        .means("delay of link-layer ACKs beyond SIFS")
        .field(Span::up_to(Duration::from_millis(1)), |wifi| &mut wifi.bss.link_ack_delay),
    &W::named("ack-filter")
        .means(
            "filter of pure TCP ACKs in Wi-Fi queues; not with `[hack]`; see \
             [simulator.md](../design/simulator.md#ack-filters)",
        )
        .field(
            Choice(&[
                ("none", WifiAckFilter::Off),
                ("cake", WifiAckFilter::Cake),
                ("cake-aggressive", WifiAckFilter::CakeAggressive),
                ("driver-replace", WifiAckFilter::DriverReplace),
                ("driver-hold", WifiAckFilter::DriverHold),
                ("thin", WifiAckFilter::Thin),
            ]),
            |wifi| &mut wifi.ack_filter,
        ),
    &W::named("ap-acks")
        .means(
            "the access point sends TCP ACKs for its clients; not with `[hack]`, nor in `tacit \
             shell`; see [fastack.md](../design/fastack.md). Schemes change it",
        )
        .field(Choice(&[("none", ApAcks::None), ("fastack", ApAcks::FastAck)]), |wifi| &mut wifi.ap_acks),
    &W::named("eifs")
        .means(
            "after which collisions bystanders wait EIFS: none; those whose frames did not begin \
             together, as ns-3; all",
        )
        .field(
            OnceFlag {
                choice: Choice(&[
                    ("none", Eifs::Never),
                    ("detected", Eifs::Detected),
                    ("all", Eifs::Overlapping),
                ]),
                off: Eifs::Never,
                on: Eifs::Overlapping,
            },
            |wifi| &mut wifi.bss.eifs,
        ),
    &W::named("capture")
        .means(
            "one PPDU of a collision may be received; see \
             [wifi-model.md](../references/wifi-model.md#collisions)",
        )
        .field(Flag, |wifi| &mut wifi.bss.capture),
    &W::named("ap-scheduler")
        .means(
            "whom the access point serves: each in turn; that with the oldest packet; by \
             [airtime](../references/wifi-model.md#airtime-fairness), as mac80211",
        )
        .field(
            Choice(&[
                ("round-robin", ApScheduler::RoundRobin),
                ("fcfs", ApScheduler::FirstComeFirstServed),
                ("airtime", ApScheduler::Airtime),
            ]),
            |wifi| &mut wifi.bss.ap_scheduler,
        ),
    &W::named("aql-limit")
        .means("airtime of the packets for a client in the access point's MAC (mac80211: 5 ms)")
        .field(OrNone(Span::between(Duration::from_micros(100), Duration::from_millis(100))), |wifi| {
            &mut wifi.bss.aql_limit
        }),
    &W::named(OFDMA)
        .means(
            "802.11ax: the access point sends to several clients at once; Block Acks answer a \
             trigger behind the PPDU or in each A-MPDU, requests, or a TRS Control field, or come \
             with data; see [wifi-model.md](../references/wifi-model.md#ofdma)",
        )
        .field(
            Choice(&[
                ("off", None),
                (MuAcknowledgment::MuBar.name(), Some(MuAcknowledgment::MuBar)),
                (MuAcknowledgment::AggregatedMuBar.name(), Some(MuAcknowledgment::AggregatedMuBar)),
                (MuAcknowledgment::BlockAckRequests.name(), Some(MuAcknowledgment::BlockAckRequests)),
                (MuAcknowledgment::Cascade.name(), Some(MuAcknowledgment::Cascade)),
                (
                    MuAcknowledgment::TriggeredResponseScheduling.name(),
                    Some(MuAcknowledgment::TriggeredResponseScheduling),
                ),
            ]),
            |wifi| &mut wifi.ofdma.acknowledgment,
        ),
    &W::named("ofdma-users")
        .means("most clients of one such PPDU")
        .field(Whole(2, OfdmaConfig::MOST_USERS), |wifi| &mut wifi.ofdma.config.max_users),
    &W::named("ofdma-sharing")
        .means(
            "clients in a PPDU: as many as bring the most bytes; or as ns-3, all with data that \
             leave no unit over",
        )
        .field(Choice(&[("goodput", Sharing::Goodput), ("most", Sharing::Most)]), |wifi| {
            &mut wifi.ofdma.config.sharing
        }),
    &W::named("ofdma-ack-mcs")
        .means("highest MCS of Block Acks that answer triggers")
        .field(Whole(0, 11), |wifi| &mut wifi.ofdma.config.block_ack_mcs),
    &W::named("trigger-padding").means("time to prepare answers (MinTrigProcTime)").field(
        Own {
            read: trigger_padding,
            write: |padding| format!("\"{} us\"", padding.as_micros()),
            allowed: TRIGGER_PADDINGS_ALLOWED,
        },
        |wifi| &mut wifi.ofdma.config.trigger_padding,
    ),
    &W::named(TRIGGERS)
        .means(
            "with `ofdma`: clients asked for packets: none; those just sent data, or that report \
             packets; those that send over 100 packets a second, while two do, or report packets; \
             all; none by name (`random-access-units`)",
        )
        .field(
            Choice(&[
                ("off", Triggers::Off),
                ("ack-aware", Triggers::AckAware),
                ("nist", Triggers::Nist),
                ("always", Triggers::Always),
                ("random", Triggers::RandomAccess),
            ]),
            |wifi| &mut wifi.ofdma.config.triggers,
        ),
    &W::named("buffer-status-polls")
        .means("with `triggers`: poll before them how much waits (BSRP)")
        .field(Flag, |wifi| &mut wifi.ofdma.config.polls),
    &W::named(RANDOM_ACCESS_UNITS)
        .means("with `triggers`: resource units of each trigger for any client with something to send (UORA)")
        .field(Whole(0, OfdmaConfig::MOST_USERS), |wifi| &mut wifi.ofdma.config.random_access_units),
    &W::named("mu-edca")
        .means(
            "with `triggers`: how a client contends for 2.1 s after an answer: as before; with \
             AIFSN 8 and windows from 511; not at all",
        )
        .field(
            Choice(&[("off", MuEdca::Off), ("openwrt", MuEdca::OpenWrt), ("silent", MuEdca::Silent)]),
            |wifi| &mut wifi.ofdma.config.mu_edca,
        ),
    &AP_QUEUE,
    &STATION_QUEUE,
];

/// Largest IP packet in an 802.11 MSDU without A-MSDU: 2304 bytes minus LLC/SNAP (802.11-2020 clause 9.2.4.7).
pub(crate) const MAX_WIFI_PACKET: Bytes = Bytes(2_296);

pub(crate) const OFDMA: &str = "ofdma";
pub(crate) const TRIGGERS: &str = "triggers";
pub(crate) const RANDOM_ACCESS_UNITS: &str = "random-access-units";

const TRIGGER_PADDINGS_ALLOWED: &str = "0, 8 or 16 us";

/// The values that the standard allows.
fn trigger_padding(value: &Value) -> Result<Duration, Mismatch> {
    let padding = duration(value)?;
    OfdmaConfig::TRIGGER_PADDINGS
        .contains(&padding)
        .then_some(padding)
        .ok_or_else(|| Mismatch::new(format!("{value} is no padding of triggers"), TRIGGER_PADDINGS_ALLOWED))
}

const SPACINGS_ALLOWED: &str = "0, 0.25, 0.5, 1, 2, 4, 8 or 16 us";
const SPACING: Span = Span::up_to(Duration::from_micros(16));

/// The minimum MPDU start spacings that a receiver can request.
fn mpdu_start_spacing(value: &Value) -> Result<Duration, Mismatch> {
    let spacing = duration(value)?;
    let known = spacing == Duration::ZERO || BssConfig::MPDU_START_SPACINGS.contains(&spacing);
    known
        .then_some(spacing)
        .ok_or_else(|| Mismatch::new(format!("{value} is not a start spacing"), SPACINGS_ALLOWED))
}

/// The limits that the standard defines.
fn amsdu_limit(value: &Value) -> Result<AmsduLimit, Mismatch> {
    let bytes = byte_count(value)?;
    [AmsduLimit::Bytes3839, AmsduLimit::Bytes7935]
        .into_iter()
        .find(|limit| Bytes(limit.bytes().into()) == bytes)
        .ok_or_else(|| Mismatch::new(format!("{value} is not an A-MSDU limit"), "\"3839 B\", \"7935 B\""))
}

const BEACONS: OrNone<Span> = OrNone(Span::from(Duration::from_millis(1)));

/// 100 time units of 1024 us.
const USUAL_BEACONS: Duration = Duration::from_micros(102_400);

/// An interval, `"none"`, or true for the default interval.
fn beacons(value: &Value) -> Result<Option<Duration>, Mismatch> {
    match value {
        Value::Flag(true) => Ok(Some(USUAL_BEACONS)),
        Value::Flag(false) => Ok(None),
        other => BEACONS.read(other),
    }
}
