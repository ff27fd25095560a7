//! Counters of a station.

use tacit_packet::units::Duration;

use super::phy::{Mode, ResourceUnit};

tacit_packet::counters! {
    /// Counters of one station; all are monotonic. Records list them in this order.
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    pub struct StationCounters {
        /// Bytes of the packets counted in `arrived`, whether or not this station knows of them: the delivered bytes of
        /// a record.
        #[cfg_attr(feature = "serde", serde(rename = "delivered_bytes"))]
        arrived_bytes: u64,
        /// Data PPDUs sent, including those that collided.
        data_ppdus: u64,
        /// MPDUs in `data_ppdus`.
        data_mpdus: u64,
        /// Packets sent under a policy without acknowledgment.
        unacknowledged: u64,
        /// Packets of `unacknowledged` that arrived; their sender does not know.
        unacknowledged_arrived: u64,
        /// Requests for missing MPDUs, each sent at an access of its own.
        repair_requests: u64,
        /// Bytes of `repair_requests`.
        repair_request_bytes: u64,
        /// MPDUs that arrived after a repair request.
        repaired: u64,
        /// Missing MPDUs that became too old to request.
        repair_given_up: u64,
        /// Packets delivered on the first transmission of their MPDU.
        delivered_first_try: u64,
        /// Packets delivered after one retransmission or more.
        delivered_after_retry: u64,
        /// MPDU transmissions that were retransmissions.
        retries: u64,
        /// Packets given up because of the retry limit or the lifetime.
        mpdus_dropped: u64,
        /// Packets the queue refused.
        queue_drops: u64,
        /// Packets that the queue accepted and its discipline dropped later: by CoDel, or by FQ-CoDel when the queue
        /// was full.
        queue_discards: u64,
        /// PPDUs of this station that collided.
        collided_ppdus: u64,
        /// ACKs and Block Acks that were expected and not received.
        missed_link_acks: u64,
        /// Block Ack Requests sent.
        block_ack_requests: u64,
        /// RTS sent.
        rts: u64,
        /// RTS frames without a CTS in response.
        missed_cts: u64,
        /// CTS-to-self frames sent.
        cts_to_self: u64,
        /// Reverse direction grants that reached the responder.
        reverse_grants: u64,
        /// PPDUs of data or Block Ack Requests sent in another station's TXOP under a reverse direction grant.
        reverse_ppdus: u64,
        /// Data MPDUs in `reverse_ppdus`.
        reverse_mpdus: u64,
        /// PPDUs of data or Block Ack Requests sent a SIFS after another exchange of the same TXOP.
        burst_ppdus: u64,
        /// TXOPs ended with a CF-End.
        cf_ends: u64,
        /// Multi-user PPDUs sent. In `data_ppdus`, each user's part counts as one PPDU.
        shared_ppdus: u64,
        /// Users' parts of multi-user PPDUs.
        shared_parts: u64,
        /// Accesses that trigger clients: with a Basic Trigger, or with a buffer status poll and the Basic Trigger
        /// after it.
        triggers: u64,
        /// Data PPDUs sent in response to a trigger.
        triggered_ppdus: u64,
        /// Pure TCP ACKs on the air, including retransmissions.
        tcp_acks_on_air: u64,
        /// PPDUs that contained only pure TCP ACKs.
        tcp_ack_ppdus: u64,
        /// ACKs and Block Acks sent.
        link_acks: u64,
        /// Those of `link_acks` that had compressed TCP ACKs appended.
        augmented_link_acks: u64,
        /// Those of `augmented_link_acks` that became longer by at most AIFS.
        augmented_within_aifs: u64,
        /// Bytes appended to ACKs and Block Acks, including repeated ones.
        appended_bytes: u64,
    }
    unrecorded {
        /// Initial control frames sent to clients with one radio for several links.
        icfs: u64,
        /// Those of `icfs` without a CTS in response; they count in `missed_cts` too.
        icf_failures: u64,
        /// Packets the queues accepted.
        accepted: u64,
        /// Packets taken back before they were sent.
        retracted: u64,
        /// Pure ACKs that the ACK filter dropped from a queue.
        filtered_acks: u64,
        /// Those of `mpdus_dropped` whose lifetime ended before their first transmission.
        expired_unsent: u64,
        /// Accesses lost to a more urgent category of the same station.
        internal_collisions: u64,
        /// MPDUs in `tcp_ack_ppdus`.
        tcp_ack_ppdu_mpdus: u64,
        /// Pure TCP ACKs in `tcp_ack_ppdus`; the others share a PPDU with data.
        tcp_ack_ppdu_acks: u64,
        /// Bytes of pure TCP ACKs as IP packets; each packet counts once, on its first transmission.
        tcp_ack_bytes: u64,
        /// Airtime of `tcp_ack_bytes` at the data rate, without preamble, MAC header and padding: column "TCP ACK" of
        /// table 3 of the HACK paper.
        tcp_ack_byte_time: Duration,
        /// AIFS plus the backoff drawn, summed over the PPDUs of pure TCP ACKs, including collided and repeated ones.
        /// This is the cost of winning the channel if no other station counts down at the same time, as closed forms
        /// and column "Acquire channel" of table 3 of the HACK paper define it. For the actual cost see
        /// [`StationAirtime`](super::StationAirtime).
        tcp_ack_backoff: Duration,
        /// Airtime of `appended_bytes` at the control rate: column "ROHC" of table 3 of the HACK paper. The actual
        /// airtime is shorter if the bytes fit into the padding of the last symbol.
        appended_byte_time: Duration,
        /// Bytes of IP packets delivered, including unacknowledged ones.
        delivered_bytes: u64,
        /// Sum over `shared_ppdus` of the duration times the number of resource units in the channel.
        shared_unit_time: Duration,
        /// The part of `shared_unit_time` that users' data fills; the rest is padding and unused units.
        shared_filled_time: Duration,
        /// Airtime of triggers sent in PPDUs of their own, of any kind, without collided ones.
        trigger_time: Duration,
        /// Airtime reserved for the responses of several users to a trigger: Block Acks, packets, buffer status
        /// reports.
        answer_time: Duration,
        /// Responses to Basic Triggers without a packet, summed over all clients asked.
        empty_answers: u64,
        /// Block Acks in a multi-user PPDU from users that append compressed TCP ACKs.
        roomy_answers: u64,
        /// Those of `roomy_answers` whose sender held more bytes than the room allowed.
        short_answers: u64,
        /// Bytes of room in `roomy_answers`.
        room_bytes: u64,
        /// Bytes of `room_bytes` that were used.
        filled_room_bytes: u64,
        /// Packets of this station that their receivers passed up. This includes packets whose link-layer ACK was lost,
        /// which this station counts as lost.
        arrived: u64,
    }
}

impl StationCounters {
    /// Counts a multi-user PPDU in which each user has a `unit` and the longest of `psdus` takes `lasts`.
    pub(super) fn count_shared_ppdu(&mut self, unit: ResourceUnit, psdus: &[(Mode, u32)], lasts: Duration) {
        let units = psdus.first().map_or(0, |(mode, _)| unit.count_in(mode.width_mhz));
        self.shared_ppdus += 1;
        self.shared_unit_time += lasts * units as u64;
        self.shared_filled_time += psdus.iter().map(|(mode, bytes)| mode.ppdu_duration(*bytes)).sum();
    }

    /// Counts a response that had room for `room` bytes beside its Block Ack and used `appended` of them.
    pub(super) fn count_room(&mut self, room: u32, appended: u32, holds_more: bool) {
        if room > 0 || holds_more {
            self.roomy_answers += 1;
            self.short_answers += u64::from(holds_more);
            self.room_bytes += u64::from(room);
            self.filled_room_bytes += u64::from(appended.min(room));
        }
    }
}
