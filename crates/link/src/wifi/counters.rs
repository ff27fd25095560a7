//! Counters of a station.

use tacit_proto::units::Duration;

use super::phy::{Mode, ResourceUnit};

tacit_proto::counters! {
    /// Counters of one station; all monotonic. Records have them in this order.
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    pub struct StationCounters {
        /// Bytes of the packets that `arrived`, known to this station or not: the delivered bytes of a record.
        #[cfg_attr(feature = "serde", serde(rename = "delivered_bytes"))]
        arrived_bytes: u64,
        /// PPDUs of data sent, collided ones included.
        data_ppdus: u64,
        /// MPDUs in them.
        data_mpdus: u64,
        /// Packets sent for which no acknowledgment is due.
        unacknowledged: u64,
        /// Of them, those that arrived, unknown to their sender.
        unacknowledged_arrived: u64,
        /// Requests for data that did not arrive, sent at an access of their own.
        repair_requests: u64,
        /// Bytes of them.
        repair_request_bytes: u64,
        /// MPDUs that arrived because they were asked for.
        repaired: u64,
        /// MPDUs that were too old to ask for any longer.
        repair_given_up: u64,
        /// Packets delivered on the first transmission of their MPDU.
        delivered_first_try: u64,
        /// Packets delivered after one retransmission or more.
        delivered_after_retry: u64,
        /// MPDU transmissions that were retransmissions.
        retries: u64,
        /// Packets given up: retry limit or lifetime.
        mpdus_dropped: u64,
        /// Packets the queue refused.
        queue_drops: u64,
        /// Packets the queue took and its discipline dropped later: CoDel, or FQ-CoDel for want of room.
        queue_discards: u64,
        /// PPDUs of this station that collided.
        collided_ppdus: u64,
        /// ACKs and Block Acks that did not come back.
        missed_link_acks: u64,
        /// Block Ack Requests sent.
        block_ack_requests: u64,
        /// RTS sent.
        rts: u64,
        /// RTS that no CTS answered.
        missed_cts: u64,
        /// CTS sent to the sender itself.
        cts_to_self: u64,
        /// Reverse direction grants that reached the responder.
        reverse_grants: u64,
        /// PPDUs of data or Block Ack Requests sent in the TXOP of another that granted it.
        reverse_ppdus: u64,
        /// MPDUs of data in them.
        reverse_mpdus: u64,
        /// PPDUs of data or Block Ack Requests sent a SIFS after another exchange of the same TXOP.
        burst_ppdus: u64,
        /// TXOPs ended with a CF-End.
        cf_ends: u64,
        /// PPDUs of several users sent, of which each user's part counts as a PPDU of data.
        shared_ppdus: u64,
        /// Parts of PPDUs of several users.
        shared_parts: u64,
        /// Basic Triggers sent, or triggers for buffer status reports before them.
        triggers: u64,
        /// PPDUs of data sent in answer to a trigger.
        triggered_ppdus: u64,
        /// Pure TCP ACKs on the air, retransmissions included.
        tcp_acks_on_air: u64,
        /// PPDUs of nothing but pure TCP ACKs.
        tcp_ack_ppdus: u64,
        /// ACKs and Block Acks sent.
        link_acks: u64,
        /// Of them, those sent with something appended.
        augmented_link_acks: u64,
        /// Of them, those lengthened by no more than AIFS.
        augmented_within_aifs: u64,
        /// Bytes appended to ACKs and Block Acks, repeated ones included.
        appended_bytes: u64,
    }
    unrecorded {
        /// Packets the queues took.
        accepted: u64,
        /// Packets taken back before they were sent.
        retracted: u64,
        /// Pure ACKs that the ACK filter dropped from a queue.
        filtered_acks: u64,
        /// Of `mpdus_dropped`, those whose lifetime was over before they were sent first.
        expired_unsent: u64,
        /// Accesses that went to a more urgent category of the same station.
        internal_collisions: u64,
        /// MPDUs in `tcp_ack_ppdus`.
        tcp_ack_ppdu_mpdus: u64,
        /// Pure TCP ACKs in `tcp_ack_ppdus`; others go beside data.
        tcp_ack_ppdu_acks: u64,
        /// Bytes of pure TCP ACKs as IP packets, each packet counted on its first transmission.
        tcp_ack_bytes: u64,
        /// Time of those bytes at the data rate alone, without preamble, MAC header and padding: the column
        /// "TCP ACK" of the HACK paper's table 3.
        tcp_ack_byte_time: Duration,
        /// AIFS and the slots drawn for each PPDU of nothing but pure TCP ACKs, collided and repeated ones included: the
        /// cost of winning the channel when no other station counts down at the same time, as closed forms and the column
        /// "Acquire channel" of the HACK paper's table 3 have it. The actual cost is in
        /// [`StationAirtime`](super::StationAirtime).
        tcp_ack_backoff: Duration,
        /// Time of `appended_bytes` at the control rate alone: the column "ROHC" of the HACK paper's table 3. On the air
        /// they may cost less, where they fit into the padding of the last symbol.
        appended_byte_time: Duration,
        /// Bytes of IP packets delivered, unacknowledged ones included.
        delivered_bytes: u64,
        /// Durations of `shared_ppdus`, each times the units that the channel has then.
        shared_unit_time: Duration,
        /// Of that, as long as the data of each user alone takes: the rest is padding, and units without a user.
        shared_filled_time: Duration,
        /// Triggers in PPDUs of their own, of any kind, collided ones excluded.
        trigger_time: Duration,
        /// PPDUs in which several users answer a trigger, or might: Block Acks, packets, buffer status reports.
        answer_time: Duration,
        /// Answers to Basic Triggers that had no packet, from anybody asked.
        empty_answers: u64,
        /// Answers of users that append, with a Block Ack in a PPDU of several.
        roomy_answers: u64,
        /// Of them, those that held more than they had room for.
        short_answers: u64,
        /// Bytes that they had room for.
        room_bytes: u64,
        /// Of these, those that were filled.
        filled_room_bytes: u64,
        /// Packets of this station that their receivers passed up, whether or not this station was told: where no
        /// link-layer ACK comes back it takes them for lost.
        arrived: u64,
    }
}

impl StationCounters {
    /// A PPDU of several users, each with a `unit`, that lasts `lasts` for the longest of `psdus`.
    pub(super) fn count_shared_ppdu(&mut self, unit: ResourceUnit, psdus: &[(Mode, u32)], lasts: Duration) {
        let units = psdus.first().map_or(0, |(mode, _)| unit.count_in(mode.width_mhz));
        self.shared_ppdus += 1;
        self.shared_unit_time += lasts * units as u64;
        self.shared_filled_time += psdus.iter().map(|(mode, bytes)| mode.ppdu_duration(*bytes)).sum();
    }

    /// An answer that had room for `room` bytes beside its Block Ack, and `appended` there.
    pub(super) fn count_room(&mut self, room: u32, appended: u32, holds_more: bool) {
        if room > 0 || holds_more {
            self.roomy_answers += 1;
            self.short_answers += u64::from(holds_more);
            self.room_bytes += u64::from(room);
            self.filled_room_bytes += u64::from(appended.min(room));
        }
    }
}
