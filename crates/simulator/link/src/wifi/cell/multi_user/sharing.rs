//! How many of the clients with data waiting share a PPDU.

use tacit_packet::units::{Duration, Instant};

use crate::wifi::cell::Cell;
use crate::wifi::functions::FunctionId;
use crate::wifi::ofdma::{OfdmaConfig, Sharing};
use crate::wifi::phy::{Mode, MultiUserPpdu, ResourceUnit};

/// What an access would carry, and the time it would take.
#[derive(Clone, Copy)]
struct Yield {
    bytes: u64,
    time: Duration,
}

impl Yield {
    /// Whether it brings more bytes than `other` in the same time, by one part in `worth`.
    fn beats(self, other: Self, worth: u64) -> bool {
        let rate = |one: Self, other: Self| u128::from(one.bytes) * u128::from(other.time.as_nanos());
        let worth = u128::from(worth);
        rate(self, other) * worth > rate(other, self) * (worth + 1)
    }
}

impl Cell {
    /// How many of `ready`, in the order of their turns, the access at `at` serves, within `limit` if given. With one,
    /// the first has the whole channel.
    pub(super) fn users_to_serve(
        &self,
        at: Instant,
        id: FunctionId,
        ofdma: &OfdmaConfig,
        ready: &[usize],
        limit: Option<Duration>,
    ) -> usize {
        let Some(first) = ready.first() else { return 0 };
        let width_mhz = self.stations[id].peers[*first].originator.steady_modes()[0].width_mhz;
        let most = ResourceUnit::users_that_fill(ready.len(), width_mhz);
        if most < 2 || ofdma.sharing == Sharing::Most {
            return most;
        }
        let waiting: Vec<u32> = ready[..most].iter().map(|peer| self.waiting_for(id, *peer)).collect();
        let mut best = None;
        let mut users = most;
        while users > 1 {
            let shared = self.shared_yield(at, id, ofdma, (&ready[..users], &waiting), limit);
            best = better(best, shared.map(|shared| (users, shared)), Sharing::FEWER_WORTH);
            users = ResourceUnit::users_that_fill(users - 1, width_mhz);
        }
        // In a TXOP that began with several users, several follow.
        let alone = limit.is_none().then(|| (1, self.yield_alone(id, *first, waiting[0])));
        better(best, alone, Sharing::ALONE_WORTH).map_or(most, |(users, _)| users)
    }

    /// Bytes of the A-MPDU of all that waits for `peer`, at most as many MPDUs as it may have.
    fn waiting_for(&self, id: FunctionId, peer: usize) -> u32 {
        let originator = &self.stations[id].peers[peer].originator;
        let limits = originator.steady_limits();
        let subframe = |len| limits.subframe_len(limits.mpdu_len(len));
        originator.unsettled().take(limits.window.into()).map(|packet| subframe(packet.len())).sum()
    }

    /// An access with a PPDU of `users`, for which `waiting` bytes each wait.
    fn shared_yield(
        &self,
        at: Instant,
        id: FunctionId,
        ofdma: &OfdmaConfig,
        (users, waiting): (&[usize], &[u32]),
        limit: Option<Duration>,
    ) -> Option<Yield> {
        let outline = self.outline(at, id, ofdma, users)?;
        let longest = self.longest_shared(id, &outline, limit);
        let mut known: Option<(Mode, u32)> = None;
        let psdus = outline.modes.iter().zip(waiting).map(|(modes, waiting)| {
            let most = match known {
                Some((mode, most)) if mode == modes[0] => most,
                _ => modes[0].bytes_within(longest),
            };
            known = Some((modes[0], most));
            (modes[0], most.min(*waiting))
        });
        let psdus: Vec<(Mode, u32)> = psdus.collect();
        let bytes = psdus.iter().map(|(_, bytes)| u64::from(*bytes)).sum();
        let ppdu = MultiUserPpdu::duration(&psdus.iter().copied());
        Some(Yield { bytes, time: self.access_time(id) + ppdu + outline.response_time })
    }

    /// An access with a PPDU of `peer` alone, for which `waiting` bytes wait.
    fn yield_alone(&self, id: FunctionId, peer: usize, waiting: u32) -> Yield {
        let originator = &self.stations[id].peers[peer].originator;
        let bytes = originator.steady_limits().longest().min(waiting);
        let [mode, control_mode] = originator.steady_modes();
        let answer = control_mode.ppdu_duration(originator.block_ack_len());
        let time = mode.ppdu_duration(bytes) + self.rules.response_after() + answer;
        Yield { bytes: bytes.into(), time: self.access_time(id) + time }
    }

    /// AIFS and the mean backoff of `id` without collisions.
    fn access_time(&self, id: FunctionId) -> Duration {
        let phy = self.rules.phy;
        let contention = &self.stations[id].contention;
        contention.aifs(phy) + phy.slot * u64::from(contention.cw_min() / 2)
    }
}

/// The one of two numbers of users that brings more bytes: `fewer` only if it is more by one part in `worth`.
fn better(more: Option<(usize, Yield)>, fewer: Option<(usize, Yield)>, worth: u64) -> Option<(usize, Yield)> {
    match (more, fewer) {
        (Some(more), Some(fewer)) if !fewer.1.beats(more.1, worth) => Some(more),
        (more, fewer) => fewer.or(more),
    }
}
