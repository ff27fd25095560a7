//! Decisions about a multi-user PPDU before its parts are filled: units, modes, and the duration of responses.

use tacit_packet::units::{Duration, Instant};

use crate::wifi::cell::Cell;
use crate::wifi::functions::FunctionId;
use crate::wifi::mac::ack_hook::AckHook;
use crate::wifi::mac::peer::Peer;
use crate::wifi::ofdma::{HackRoom, MuAcknowledgment, OfdmaConfig};
use crate::wifi::phy::{
    BLOCK_ACK_REQUEST_LEN, MPDU_DELIMITER_LEN, Mode, MultiUser, MultiUserPpdu, ResourceUnit, mu_bar_len,
};

/// Longest extension of several users' Block Acks for compressed TCP ACKs; further ACKs wait. Ours.
const LONGEST_RESPONSE: Duration = Duration::from_millis(1);

/// By how much one more segment can extend a PPDU: a quarter of a symbol of 16 us, and 4 us of packet extension.
const ONE_SEGMENT: Duration = Duration::from_micros(20);

/// Decisions about a round before its parts are filled.
pub(super) struct Outline {
    /// The users acknowledge their data.
    pub is_answered: bool,
    pub unit: ResourceUnit,
    /// Modes of the users' data and of their responses, in the order of the users.
    pub modes: Vec<[Mode; 2]>,
    /// Room for compressed ACKs of each user.
    pub rooms: Vec<u32>,
    pub control_mode: Mode,
    /// Time from the end of the data to the end of the responses.
    pub response_time: Duration,
}

impl Cell {
    /// The modes and room of `users` in a PPDU for all of them.
    pub(super) fn outline(
        &self,
        at: Instant,
        id: FunctionId,
        ofdma: &OfdmaConfig,
        users: &[usize],
    ) -> Option<Outline> {
        let station = &self.stations[id];
        let originator = |peer: &usize| &station.peers[*peer].originator;
        let modes = users.iter().map(|peer| originator(peer).steady_modes()[0]);
        let down: Vec<Mode> = modes.clone().collect();
        let up: Vec<Mode> = modes.map(|mode| mode.at_most_mcs(ofdma.response_mcs())).collect();
        let ppdu_down = self.shared_ppdu(MultiUser::Down, &down)?;
        let ppdu_up = self.shared_ppdu(MultiUser::Up, &up)?;
        let controls = || users.iter().map(|peer| originator(peer).steady_modes()[1]);
        let control_mode = controls().min_by_key(Mode::rate)?;
        let one_by_one = ofdma.acknowledgment == MuAcknowledgment::BlockAckRequests;
        let modes = (down.iter().zip(&up).zip(controls()))
            .map(|((down, up), control)| {
                let answer = if one_by_one { control } else { up.among_users(&ppdu_up)? };
                Some([down.among_users(&ppdu_down)?, answer])
            })
            .collect::<Option<Vec<_>>>()?;
        let rooms: Vec<u32> = (users.iter().zip(&modes))
            .map(|(peer, modes)| if one_by_one { 0 } else { self.room_for(id, ofdma, *peer, &modes[1]) })
            .collect();
        let is_answered = users.first().is_some_and(|peer| originator(peer).is_answered());
        let response_time = match is_answered {
            true => self.response_time(at, id, ofdma, users, (&modes, &rooms), &control_mode),
            false => Duration::ZERO,
        };
        Some(Outline { is_answered, unit: ppdu_down.unit, modes, rooms, control_mode, response_time })
    }

    /// Room for compressed ACKs in the response of `peer`, in bytes.
    fn room_for(&self, id: FunctionId, ofdma: &OfdmaConfig, peer: usize, mode: &Mode) -> u32 {
        let entry = &self.stations[id].peers[peer];
        if !matches!(self.stations[entry.id].hook, AckHook::Hack(_)) {
            return 0;
        }
        let most = match ofdma.acknowledgment {
            MuAcknowledgment::TriggeredResponseScheduling => mode.bytes_in_symbols(OfdmaConfig::TRS_SYMBOLS),
            _ => mode.bytes_within(LONGEST_RESPONSE),
        };
        let around = ofdma.carried_len(1) - 1;
        let most = most.saturating_sub(triggered_response_len(ofdma, entry) + around);
        match ofdma.hack_room {
            HackRoom::Fixed(bytes) => bytes.min(most),
            HackRoom::Forecast => entry.room.bytes(most),
        }
    }

    /// Time from the end of the data to the end of the last response.
    fn response_time(
        &self,
        at: Instant,
        id: FunctionId,
        ofdma: &OfdmaConfig,
        users: &[usize],
        (modes, rooms): (&[[Mode; 2]], &[u32]),
        control_mode: &Mode,
    ) -> Duration {
        let sifs = self.rules.response_after();
        let peers = || users.iter().map(|peer| &self.stations[id].peers[*peer]);
        match ofdma.acknowledgment {
            MuAcknowledgment::BlockAckRequests => {
                let block_acks = peers()
                    .zip(modes)
                    .map(|(peer, modes)| sifs + modes[1].ppdu_duration(peer.originator.block_ack_len()));
                let requests = users.len() as u64 - 1;
                block_acks.sum::<Duration>()
                    + (self.rules.phy.sifs + control_mode.ppdu_duration(BLOCK_ACK_REQUEST_LEN)) * requests
            }
            _ => {
                let psdus = self.block_ack_psdus(id, ofdma, users, (modes, rooms));
                let psdus =
                    psdus.zip(peers()).map(|((mode, len), peer)| (mode, len + data_room(ofdma, peer, at)));
                let trigger = self.trigger_time(ofdma, users.len(), control_mode);
                trigger + sifs + MultiUserPpdu::duration(&psdus)
            }
        }
    }

    /// Modes and bytes of the simultaneous Block Acks of `users`.
    pub(super) fn block_ack_psdus(
        &self,
        id: FunctionId,
        ofdma: &OfdmaConfig,
        users: &[usize],
        (modes, rooms): (&[[Mode; 2]], &[u32]),
    ) -> impl Iterator<Item = (Mode, u32)> + Clone {
        let peers = &self.stations[id].peers;
        users.iter().zip(modes.iter().zip(rooms)).map(move |(peer, (modes, room))| {
            (modes[1], triggered_response_len(ofdma, &peers[*peer]) + ofdma.carried_len(*room))
        })
    }

    /// Time from the end of the data to the end of the trigger after it; zero if the trigger is inside the PPDU.
    pub(super) fn trigger_time(&self, ofdma: &OfdmaConfig, users: usize, control_mode: &Mode) -> Duration {
        if ofdma.acknowledgment != MuAcknowledgment::MuBar {
            return Duration::ZERO;
        }
        let len = mu_bar_len(users as u32, ofdma.padding_bytes(control_mode));
        self.rules.phy.sifs + control_mode.ppdu_duration(len)
    }

    /// Longest duration of the PPDU.
    pub(super) fn longest_shared(
        &self,
        id: FunctionId,
        outline: &Outline,
        limit: Option<Duration>,
    ) -> Duration {
        let within = self.ppdu_limit(id, outline.response_time, limit);
        let [first, ..] = &outline.modes[..] else { return within };
        let is_even = outline.modes.iter().all(|modes| modes[0] == first[0]);
        // One user's coding may need a segment that another user's does not.
        let segment = if is_even { Duration::ZERO } else { ONE_SEGMENT };
        within.saturating_sub(segment)
    }
}

/// Room in bytes for data of `peer` in its response to a PPDU at `at`.
pub(super) fn data_room(ofdma: &OfdmaConfig, peer: &Peer, at: Instant) -> u32 {
    match ofdma.acknowledgment {
        MuAcknowledgment::Cascade if peer.answered && !peer.uplink.expects_nothing(at) => {
            peer.uplink.expected_bytes()
        }
        _ => 0,
    }
}

/// Bytes of a Block Ack of `peer` in response to a trigger, and of the report with it.
pub(super) fn triggered_response_len(ofdma: &OfdmaConfig, peer: &Peer) -> u32 {
    peer.originator.block_ack_len() + MPDU_DELIMITER_LEN + ofdma.report_len()
}
