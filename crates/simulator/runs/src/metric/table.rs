//! The table of metrics.

use tacit_link::wifi::{AirtimeUse, StationCounters};
use tacit_sim::record::Downloaded;

use super::links::OF_LINKS;
use super::{Metric, metric};

/// The metric `PART_QUANTITY`, whose value is `view.PART()?.QUANTITY()`, or `view.PART(PERCENT)`.
macro_rules! part {
    ($part:ident.$quantity:ident => $summary:expr) => {
        metric(concat!(stringify!($part), "_", stringify!($quantity)), $summary, |view| {
            Option::from(view.$part()?.$quantity())
        })
    };
    ($part:ident.$name:ident($percent:literal) => $summary:expr) => {
        metric(concat!(stringify!($part), "_", stringify!($name)), $summary, |view| view.$part($percent))
    };
}

/// All metrics: the columns of `runs.parquet` after those that identify the run.
pub const ALL: &[Metric] = &all();

const COUNT: usize = OF_RUNS.len() + OF_LINKS.len();

const fn all() -> [Metric; COUNT] {
    let mut metrics = [OF_RUNS[0]; COUNT];
    let mut index = 0;
    while index < COUNT {
        metrics[index] = if index < OF_RUNS.len() { OF_RUNS[index] } else { OF_LINKS[index - OF_RUNS.len()] };
        index += 1;
    }
    metrics
}

const FIRST_HOST_SHARE: &str = "percent of the bytes delivered that was the first host's, from sample to sample \
     (`run.sample-interval`), repair included";

const COMPLETION: &str =
    "from the start of such a flow until its sink had everything; percentiles are nearest ranks";
const OF_RUNS: &[Metric] = &[
    metric("goodput_bps", "payload that arrived in the measured window, each byte once, all flows", |view| {
        Some(view.outcome.goodput_bps())
    }),
    metric(
        "transfer_goodput_bps",
        "payload over the time in which at least one flow was under way",
        |view| Some(view.outcome.transfer_goodput_bps()),
    ),
    metric("download_goodput_bps", "goodput of the flows from the server", |view| view.direction_bps(true)),
    metric("upload_goodput_bps", "of the flows to the server", |view| view.direction_bps(false)),
    metric("least_client_goodput_bps", "of the client that has least", |view| {
        view.select(|_| true).least_goodput_bps()
    }),
    metric("adopters", "clients that use the scheme; only with `clients.adopters`", |view| {
        view.outcome.adopters.map(f64::from)
    }),
    part!(adopter.goodput_bps => "mean of these clients"),
    part!(adopter.least_goodput_bps => "of the one of them that has least"),
    part!(adopter.retransmitted_share => "data packets sent again among theirs"),
    part!(adopter.completion_p50_s => "times of their files"),
    part!(other.goodput_bps => "mean of the other clients, which use `stock`"),
    part!(other.least_goodput_bps => "of the one of them that has least"),
    part!(other.retransmitted_share => "data packets sent again among theirs"),
    part!(other.completion_p50_s => "times of their files"),
    metric("fairness", "Jain's index of the flows' goodput", |view| view.fairness()),
    metric("transfer_fairness", "the same from start to last byte", |view| view.transfer_fairness()),
    metric("flows_completed", "flows of a fixed size that ended, whole run", |view| {
        let sized = view.has_sized_flows();
        sized.then_some(view.completion_times.len() as f64)
    }),
    metric("flow_completion_p50_s", COMPLETION, |view| view.completion_s(50)),
    metric("flow_completion_p95_s", COMPLETION, |view| view.completion_s(95)),
    metric("flow_completion_p99_s", COMPLETION, |view| view.completion_s(99)),
    metric("flow_completion_mean_s", COMPLETION, |view| {
        let times = &view.completion_times;
        Some(times.iter().map(|time| time.as_secs_f64()).sum::<f64>() / times.len() as f64)
    }),
    metric("first_flow_share", "goodput of the first flow over the mean of all", |view| {
        view.first_flow_share()
    }),
    part!(first_flow.goodput_bps => "payload of this flow that arrived in the measured window"),
    part!(last_flow.goodput_bps => "payload of this flow that arrived in the measured window"),
    part!(first_flow.transfer_goodput_bps => "payload of the first flow over the time from its start to its last byte"),
    part!(first_flow.bytes => "bytes of the first flow in the measured window"),
    metric(
        "first_host_speedup",
        "goodput of the host that reads the first flow over the mean of the other hosts'",
        |view| view.first_host_and_others().map(|(first, others)| first / others),
    ),
    metric("other_hosts_goodput_bps", "mean of the hosts that do not read the first flow", |view| {
        Some(view.first_host_and_others()?.1)
    }),
    part!(first_host_share.least(0) => FIRST_HOST_SHARE),
    part!(first_host_share.p10(10) => FIRST_HOST_SHARE),
    part!(first_host_share.p50(50) => FIRST_HOST_SHARE),
    part!(first_host_share.p75(75) => FIRST_HOST_SHARE),
    part!(first_host_share.most(100) => FIRST_HOST_SHARE),
    part!(first_host.goodput_bps => "goodput of the client at the wireless end of the first flow"),
    part!(first_host.idle_share => "time in which nothing waited for this host or was on the air"),
    part!(first_host.waiting_share => "time in which packets waited for the host's turn"),
    part!(first_host.served_share => "time of the exchanges with it: handshakes, PPDUs, link-layer ACKs, timeouts"),
    part!(first_host.lost_share => "packets in these PPDUs that brought nothing new, over all"),
    part!(first_host.useful_share => "its goodput over the bytes of packets that arrived"),
    part!(first_host.packets_per_ppdu => "packets in a PPDU for it, or from it"),
    metric("tcp_acks_on_air_per_s", "pure ACKs on the air, retransmissions included", |view| {
        view.per_second(|air| air.tcp_acks_on_air)
    }),
    metric("tcp_ack_ppdus_per_s", "PPDUs of nothing but pure ACKs", |view| {
        view.per_second(|air| air.tcp_ack_ppdus)
    }),
    metric("accesses_per_s", "channel accesses, collisions counted once", |view| {
        Some(view.bss?.accesses() as f64 / view.seconds)
    }),
    metric("collisions_per_s", "accesses in which two or more stations sent at once", |view| {
        Some(view.bss?.collisions() as f64 / view.seconds)
    }),
    metric("retries_per_s", "MPDU transmissions that were retransmissions", |view| {
        view.per_second(|air| air.retries)
    }),
    metric("retry_share", "retransmissions among MPDU transmissions", |view| {
        view.share(|air| air.retries, |air| air.data_mpdus)
    }),
    metric(
        "first_try_share",
        "of the delivered MPDUs, those delivered on their first transmission",
        |view| {
            view.share(
                |air| air.delivered_first_try,
                |air| air.delivered_first_try + air.delivered_after_retry,
            )
        },
    ),
    metric("ampdu_mean", "MPDUs per PPDU of data, PPDUs of TCP ACKs apart", |view| {
        view.share(|air| air.data_mpdus - air.tcp_ack_ppdu_mpdus, |air| air.data_ppdus - air.tcp_ack_ppdus)
    }),
    metric("ack_ampdu_mean", "TCP ACKs per PPDU of TCP ACKs", |view| {
        view.share(|air| air.tcp_ack_ppdu_acks, |air| air.tcp_ack_ppdus)
    }),
    metric("queue_delay_p50_us", "wait in the queue of the busiest station", |view| {
        Some(view.busiest()?.queueing_delay_us.p50 as f64)
    }),
    metric("queue_delay_p95_us", "wait in the queue of the busiest station", |view| {
        Some(view.busiest()?.queueing_delay_us.p95 as f64)
    }),
    metric("queue_drops_per_s", "packets that Wi-Fi queues refused", |view| {
        view.per_second(|air| air.queue_drops)
    }),
    metric("mpdus_dropped_per_s", "MPDUs given up: retry limit or lifetime", |view| {
        view.per_second(|air| air.mpdus_dropped)
    }),
    metric("lifetime_drop_share", "packets dropped unsent for age (`wifi.lifetime`)", |view| {
        let sent =
            |air: &StationCounters| air.delivered_first_try + air.delivered_after_retry + air.unacknowledged;
        view.share(|air| air.expired_unsent, |air| air.expired_unsent + sent(air))
    }),
    metric(
        "silent_flows",
        "flows that delivered nothing in the measured window, excluding ended ones and application flows",
        |view| Some(view.flows_without_goodput(false)),
    ),
    metric(
        "early_flows",
        "flows that had ended before the measured window, excluding application flows",
        |view| Some(view.flows_without_goodput(true)),
    ),
    metric("missed_link_acks_per_s", "ACKs and Block Acks that did not come back", |view| {
        view.per_second(|air| air.missed_link_acks)
    }),
    metric("augmented_link_acks_per_s", "link-layer ACKs with compressed TCP ACKs", |view| {
        view.per_second(|air| air.augmented_link_acks)
    }),
    metric("augmented_within_aifs_share", "those of them lengthened by no more than AIFS", |view| {
        view.share(|air| air.augmented_within_aifs, |air| air.augmented_link_acks)
    }),
    metric("appended_bytes_per_s", "bytes of compressed TCP ACKs", |view| {
        view.per_second(|air| air.appended_bytes)
    }),
    metric("shared_ppdus_per_s", "PPDUs for several users (OFDMA), collided ones included", |view| {
        view.per_second(|air| air.shared_ppdus)
    }),
    metric(
        "shared_ppdu_share",
        "PPDUs for several users among all of data, of stations that send any such",
        |view| {
            view.share_of_senders(
                |air| air.shared_ppdus,
                |air| air.data_ppdus - air.shared_parts + air.shared_ppdus,
            )
        },
    ),
    metric("users_per_shared_ppdu", "users of each of them", |view| {
        view.share(|air| air.shared_parts, |air| air.shared_ppdus)
    }),
    metric("shared_unit_fill", "share of their units' time that a user's data takes", |view| {
        Some(
            view.millis(|station| station.counters.shared_filled_time)?
                / view.millis(|station| station.counters.shared_unit_time)?,
        )
    }),
    metric(
        "triggers_per_s",
        "triggers that ask for packets (Basic Triggers), or polls before them",
        |view| view.per_second(|air| air.triggers),
    ),
    metric("trigger_time_share", "time of triggers that go in PPDUs of their own, of any kind", |view| {
        view.time_share(|station| station.counters.trigger_time)
    }),
    metric("answer_time_share", "time of PPDUs in which users answer triggers together", |view| {
        view.time_share(|station| station.counters.answer_time)
    }),
    metric("empty_answer_share", "answers without a packet, of users that were asked for packets", |view| {
        view.share(|air| air.empty_answers, |air| air.empty_answers + air.triggered_ppdus)
    }),
    metric(
        "hack_room_fill",
        "bytes of compressed TCP ACKs over the room in Block Acks to triggers",
        |view| view.share(|air| air.filled_room_bytes, |air| air.room_bytes),
    ),
    metric("hack_room_short_share", "of these Block Acks, those with too little room", |view| {
        view.share(|air| air.short_answers, |air| air.roomy_answers)
    }),
    metric("native_acks", "pure TCP ACKs that HACK drivers sent as packets", |view| {
        view.hack(|hack| hack.native_acks)
    }),
    metric("compressed_acks", "pure TCP ACKs that rode on link-layer ACKs, each counted once", |view| {
        view.hack(|hack| hack.compressed_acks)
    }),
    metric("compressed_bytes_per_ack", "bytes of each, without repetitions", |view| {
        Some(view.hack(|hack| hack.compressed_bytes)? / view.hack(|hack| hack.compressed_acks)?)
    }),
    metric("compression_ratio", "bytes they would have had as IP packets, over the bytes they had", |view| {
        Some(view.hack(|hack| hack.uncompressed_bytes)? / view.hack(|hack| hack.compressed_bytes)?)
    }),
    metric("flushed_acks", "ACKs held and then sent as packets", |view| view.hack(|hack| hack.flushed_acks)),
    metric("thinned_acks", "ACKs that gave way to a later one before they rode", |view| {
        view.hack(|hack| hack.thinned_acks)
    }),
    metric("cheaper_acks", "ACKs held and then sent as packets because that takes less airtime", |view| {
        view.hack(|hack| hack.cheaper_acks)
    }),
    metric("duplicate_frames", "frames of compressed ACKs dropped as duplicates", |view| {
        view.hack(|hack| hack.duplicate_frames)
    }),
    metric("failed_frames", "frames of compressed ACKs that could not be decoded", |view| {
        view.hack(|hack| hack.failed_frames)
    }),
    metric("tcp_retransmitted_share", "data packets sent again among those sent, whole run", |view| {
        Some(
            view.sent(|end| Some(end.packets_retransmitted))?
                / view.sent(|end| Some(end.data_packets_sent))?,
        )
    }),
    metric("tcp_rtos", "retransmission timeouts, whole run", |view| view.sent(|end| end.timeouts)),
    metric("tcp_fast_recoveries", "fast recoveries, whole run", |view| view.sent(|end| end.fast_recoveries)),
    metric(
        "acks_per_data_packet",
        "acknowledgments sent over the data packets received: TCP, TACK and datagrams with reports, whole run",
        |view| view.acks_per_data_packet(),
    ),
    metric("tcp_acks_sent", "pure ACKs that receivers sent, whole run", |view| {
        view.received(|end| end.acks_sent)
    }),
    metric("tcp_data_per_ack", "data packets received per ACK sent, whole run", |view| {
        Some(view.received(|end| end.data_packets_received)? / view.received(|end| end.acks_sent)?)
    }),
    metric(
        "rtt_min_ms",
        "smallest round-trip time of a sender of TACK at the end, the largest of all",
        |view| view.rtt_min_ms(),
    ),
    metric("blocked_kb_p50", "kB that a receiver of TACK holds back behind missing ones", |view| {
        view.blocked_kb()
    }),
    part!(wired.drops => "packets that queues of wired and cellular links dropped"),
    part!(wired.queue_delay_p95_us => "wait in the busiest of those queues"),
    metric("l4s_queue_delay_p99_us", "wait of L4S packets in the busiest queue with an AQM", |view| {
        let delays = view.outcome.pipes.iter().filter_map(|pipe| pipe.l4s_queueing_delay_us);
        delays.map(|delays| delays.p99 as f64).reduce(f64::max)
    }),
    part!(first_way.utilisation => "use of the fullest wired or cellular link on the first flow's way"),
    part!(first_way.drops => "packets that queues of those links dropped"),
    part!(first_way.queue_delay_p95_us => "wait in the busiest of those queues"),
    metric(
        "one_way_delay_p95_us",
        "propagation and the 95th percentile of the wait in the busiest queue; without Wi-Fi",
        |view| view.one_way_delay_p95_us(),
    ),
    metric(
        "log_power",
        "natural logarithm of the first flow's goodput in Mb/s over that delay in ms (Pantheon)",
        |view| Some((view.first_flow()?.goodput_bps() / 1e6 / (view.one_way_delay_p95_us()? / 1e3)).ln()),
    ),
    metric("airtime_data", "first transmissions of data", |view| view.airtime(AirtimeUse::Data)),
    metric("airtime_tcp_ack", "first transmissions of TCP ACKs", |view| view.airtime(AirtimeUse::TcpAck)),
    metric("airtime_retransmission", "retransmissions", |view| view.airtime(AirtimeUse::Retransmission)),
    metric("airtime_link_ack", "link-layer ACKs", |view| view.airtime(AirtimeUse::LinkAck)),
    metric("airtime_protection", "RTS and CTS", |view| view.airtime(AirtimeUse::Protection)),
    metric("airtime_compressed_ack", "compressed TCP ACKs on link-layer ACKs", |view| {
        view.airtime(AirtimeUse::CompressedAck)
    }),
    metric("airtime_acquisition", "time spent winning the channel", |view| {
        view.airtime(AirtimeUse::Acquisition)
    }),
    metric("airtime_collision", "collisions", |view| view.airtime(AirtimeUse::Collision)),
    metric("airtime_beacon", "beacons", |view| view.airtime(AirtimeUse::Beacon)),
    metric("airtime_idle", "time with nothing to send", |view| view.airtime(AirtimeUse::Idle)),
    metric(
        "tcp_ack_byte_time_ms",
        "time of the bytes of TCP ACKs sent as packets at the data rate",
        |view| view.millis(|station| station.counters.tcp_ack_byte_time),
    ),
    metric(
        "appended_byte_time_ms",
        "time that the bytes of compressed TCP ACKs take at the control rate",
        |view| view.millis(|station| station.counters.appended_byte_time),
    ),
    metric("tcp_ack_ppdu_time_ms", "PPDUs of nothing but TCP ACKs", |view| {
        Some(view.spent_on_acks(AirtimeUse::TcpAck)? + view.spent_on_acks(AirtimeUse::Retransmission)?)
    }),
    metric(
        "tcp_ack_acquisition_ms",
        "idle time before those PPDUs won the channel, collisions included",
        |view| view.spent_on_acks(AirtimeUse::Acquisition),
    ),
    metric("tcp_ack_backoff_ms", "AIFS and slots drawn for each of them", |view| {
        view.millis(|station| station.counters.tcp_ack_backoff)
    }),
    metric("tcp_ack_link_ack_ms", "link-layer ACKs that answer them, and the wait for those", |view| {
        view.spent_on_acks(AirtimeUse::LinkAck)
    }),
    metric("tcp_ack_collision_ms", "their share of the airtime lost in collisions", |view| {
        view.spent_on_acks(AirtimeUse::Collision)
    }),
    metric("pages_completed", "pages finished, all users", |view| {
        Some(view.pages.as_ref()?.load_times.len() as f64)
    }),
    metric("page_load_p50_ms", "from the question for the document to the last byte", |view| {
        view.page_load_ms(50)
    }),
    metric("page_load_p95_ms", "from the question for the document to the last byte", |view| {
        view.page_load_ms(95)
    }),
    metric("page_load_last_ms", "of the page finished last; of several users, the longest", |view| {
        Some(view.pages.as_ref()?.last?.as_secs_f64() * 1e3)
    }),
    metric("page_load_mean_ms", "from the question for the document to the last byte, mean", |view| {
        Some(view.pages.as_ref()?.mean_s()? * 1e3)
    }),
    metric("frames_played", "frames of videos played, damaged ones included", |view| {
        view.watched(|video| video.frames_played as f64)
    }),
    metric("frames_damaged_share", "those of them that lacked bytes: macroblocking", |view| {
        let damaged = view.watched(|video| video.frames_damaged as f64)?;
        Some(damaged / view.watched(|video| video.frames_played as f64)?)
    }),
    metric("rebuffers", "times a play-out buffer ran dry", |view| {
        view.watched(|video| video.rebuffers as f64)
    }),
    metric("rebuffering_ratio", "time players waited for video, over the time it was watched", |view| {
        let waited = view.watched(|video| video.rebuffering.as_secs_f64())?;
        Some(waited / view.watched(|video| video.watched.as_secs_f64())?)
    }),
    metric("fwp_holes", "holes that FWP's shims filled at once", |view| view.fwp(|counters| counters.holes)),
    metric("fwp_overdue_holes", "holes left to TCP and filled once its retransmission was overdue", |view| {
        view.fwp(|counters| counters.overdue_holes)
    }),
    metric("fwp_placeholder_share", "segments that placeholders stood for, among all", |view| {
        let due = view.fwp(|counters| counters.segments + counters.lost_segments)?;
        Some(view.fwp(|counters| counters.placeholders)? / due)
    }),
    metric("fwp_switched_off", "times FWP's shims took losses for congestion", |view| {
        view.fwp(|counters| counters.switched_off)
    }),
    metric("repair_requests", "requests for bytes behind placeholders", |view| {
        view.repaired(|got| got.repair_requests as f64)
    }),
    metric("repeated_repairs", "of those, the ones that left something open", |view| {
        view.repaired(|got| got.repeated_repairs as f64)
    }),
    metric(
        "repair_delay_p50_ms",
        "from a hole to the release of its last byte, of the slowest download",
        |view| view.slowest_repair(|delay| delay.p50),
    ),
    metric(
        "repair_delay_p95_ms",
        "from a hole to the release of its last byte, of the slowest download",
        |view| view.slowest_repair(|delay| delay.p95),
    ),
    metric(
        "internet_overhead",
        "bytes of repair, heads and requests included, over those that users got",
        |view| {
            let repair = |got: &Downloaded| got.request_bytes + got.head_bytes + got.answer_bytes;
            Some(view.repaired(|got| repair(got).0 as f64)? / view.repaired(|got| got.released.0 as f64)?)
        },
    ),
    metric("wireless_overhead", "bytes of requests and heads of repair over those that users got", |view| {
        let heads = |got: &Downloaded| got.request_bytes + got.head_bytes;
        Some(view.repaired(|got| heads(got).0 as f64)? / view.repaired(|got| got.released.0 as f64)?)
    }),
    metric(
        "link_repair_overhead",
        "bytes of repair requests to access points, over those that users got",
        |view| {
            let bytes = view.on_air(|air| air.repair_request_bytes)?;
            Some(bytes / view.repaired(|got| got.released.0 as f64)?)
        },
    ),
    metric("failed_downloads", "downloads given up because a hole stayed open", |view| {
        view.repaired(|got| f64::from(u8::from(got.failure.is_some())))
    }),
    metric("video_start_up_ms", "from the start of a video's source to its first frame, mean", |view| {
        let started = view.videos.iter().filter_map(|video| video.start_up);
        let (count, total) =
            started.fold((0, 0.0), |(count, total), at| (count + 1, total + at.as_secs_f64() * 1e3));
        Some(total / f64::from(count))
    }),
    metric("events", "events processed, whole run", |view| Some(view.outcome.events as f64)),
];
