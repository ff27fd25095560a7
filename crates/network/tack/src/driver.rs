//! The task that owns a socket: receives and sends datagrams, in batches if the system supports them.

use std::io::{self, IoSliceMut};
use std::net::UdpSocket;
use std::sync::{Arc, Weak};

use nix::errno::Errno;
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit};
use tacit_packet::Ecn;
use tacit_packet::units::{Duration, Instant};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::clock::Timer;
use crate::datagram::{Datagram, Route};
use crate::hub::Turn;
use crate::icmp;
use crate::radio::Lookout;
use crate::shared::Shared;
use crate::socket::Socket;

/// Most bytes of a datagram.
const MAX_DATAGRAM: usize = 65_535;

/// Most bytes per send call; an IP packet limits it.
const MAX_BATCH: usize = 65_000;

/// Batches in a row that the system could not cut before datagrams are handed to it one by one for good. Ours: one may fail where the
/// MTU of an interface falls.
const UNCUT_MAX: u32 = 8;

/// Batches that are received before sending is attempted, and the other way round. Ours.
const TURNS: usize = 16;

/// After a turn later than this the machine may have slept: datagrams that arrived meanwhile come before timers that are overdue. Ours.
const SUSPENSION: Duration = Duration::from_secs(1);

/// Fewest batches that a call asks for. With one more than arrives, the call shows that there are no more.
const WANTED_MIN: usize = 2;

/// Exists as long as a clone of the endpoint does.
pub(crate) struct Alive(pub Arc<[Arc<Shared>]>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.iter().for_each(|shard| shard.work.notify_one());
    }
}

/// State shared by all drivers of an endpoint. The sockets stay open until the last driver ends, because the kernel
/// selects them by their order.
pub(crate) struct Group {
    pub shards: Arc<[Arc<Shared>]>,
    pub sockets: Vec<Socket>,
}

/// Datagrams of one length to one address; only the last may be shorter.
#[derive(Default)]
struct Batch {
    to: Option<(Route, Ecn)>,
    bytes: Vec<u8>,
    segment: usize,
    count: usize,
}

/// The driver of one socket.
struct Driver {
    group: Arc<Group>,
    shared: Arc<Shared>,
    batch: Batch,
    /// A datagram that did not fit in the batch.
    next: Option<(Route, Ecn, Vec<u8>)>,
    /// The batch was sent a second time, because the first call reported an ICMP error of earlier datagrams instead of
    /// sending.
    tried_again: bool,
    /// Batches in a row that the system could not cut.
    uncut: u32,
    /// The socket, while its send buffer is full.
    room: Option<AsyncFd<UdpSocket>>,
    lookout: Lookout,
    buffers: Vec<Vec<u8>>,
    /// Batches that the next call asks for.
    wanted: usize,
}

/// Drives the socket until the endpoint and all its connections are gone.
pub(crate) async fn run(group: Arc<Group>, index: usize, alive: Weak<Alive>) {
    let buffers = (0..BATCH_SIZE).map(|_| vec![0; MAX_DATAGRAM]).collect();
    let shared = group.shards[index].clone();
    let mut driver = Driver {
        group,
        shared: shared.clone(),
        batch: Batch::default(),
        next: None,
        tried_again: false,
        uncut: 0,
        room: None,
        lookout: Lookout::default(),
        buffers,
        wanted: WANTED_MIN,
    };
    if let Err(error) = driver.drive(&alive).await {
        shared.hub().fail(&error.to_string());
    }
    shared.accept.notify_waiters();
    shared.connection_ended.notify_waiters();
}

impl Driver {
    fn socket(&self) -> &Socket {
        &self.group.sockets[usize::from(self.shared.shard.index)]
    }

    async fn drive(&mut self, alive: &Weak<Alive>) -> io::Result<()> {
        let mut timer = Timer::new()?;
        let mut last_turn = self.shared.clock.now();
        loop {
            let more_in = self.receive()?;
            let (more_out, blocked) = self.send()?;
            let before = std::mem::replace(&mut last_turn, self.shared.clock.now());
            if last_turn.saturating_since(before) > SUSPENSION {
                // The runtime looks at the socket before the next turn.
                tokio::task::yield_now().await;
                continue;
            }
            let wait = {
                let mut hub = self.shared.hub();
                let now = last_turn;
                hub.handle_timeout(now);
                if hub.len() == 0 && alive.strong_count() == 0 && !more_out && !blocked {
                    return Ok(());
                }
                if hub.take_connection_ended() {
                    self.shared.connection_ended.notify_waiters();
                }
                if hub.has_accepted() {
                    self.shared.accept.notify_waiters();
                }
                let at = if hub.has_work() && !blocked { Some(now) } else { hub.poll_timeout() };
                if more_in || more_out || (!blocked && at.is_some_and(|at| at <= now)) {
                    None
                } else {
                    Some((now, at))
                }
            };
            let Some((now, at)) = wait else {
                tokio::task::yield_now().await;
                continue;
            };
            timer.set(now, at)?;
            if !blocked {
                self.room = None;
            }
            let socket = &self.group.sockets[usize::from(self.shared.shard.index)];
            tokio::select! {
                ready = socket.socket.ready(Interest::READABLE | Interest::ERROR) => ready?.retain_ready(),
                ready = has_room(socket, &mut self.room), if blocked => ready?,
                expired = timer.expired() => expired?,
                () = self.shared.work.notified() => {}
            }
        }
    }

    /// Handles received datagrams; returns true if there may be more.
    fn receive(&mut self) -> io::Result<bool> {
        self.read_icmp_errors();
        for _ in 0..TURNS {
            let mut metas = [RecvMeta::default(); BATCH_SIZE];
            let mut slices = self.buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer));
            let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
                std::array::from_fn(|_| slices.next().expect("as many buffers were made"));
            let Socket { socket, state } = &self.group.sockets[usize::from(self.shared.shard.index)];
            let wanted = self.wanted;
            let mut count = 0;
            let received = socket.try_io(Interest::READABLE, |socket| {
                count = state.recv(socket.into(), &mut slices[..wanted], &mut metas[..wanted])?;
                // The system had no more: with the next datagram it wakes this driver, so it is not asked again. Said within this call,
                // that forgets no datagram that arrives meanwhile.
                if count < wanted { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            });
            match received {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && count == 0 => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // An ICMP error for a datagram sent earlier; any host can provoke one.
                Err(error) if is_of_the_network(&error) => continue,
                Err(error) => return Err(error),
            }
            self.wanted = next_wanted(wanted, count);
            let mut hub = self.shared.hub();
            let now = self.shared.clock.now();
            let mut strangers = 0;
            let for_this_shard = datagrams(&metas[..count], &mut self.buffers).filter(|datagram| {
                let is_own = self.shared.shard.other_shard(datagram.bytes).is_none();
                strangers += u64::from(!is_own);
                is_own
            });
            hub.handle_all(now, for_this_shard);
            if strangers > 0 {
                hub.counters.datagrams_handed_on += strangers;
                drop(hub);
                self.hand_on(now, &metas[..count]);
            }
            if count < wanted {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Handles ICMP errors for datagrams sent earlier.
    fn read_icmp_errors(&mut self) {
        let Socket { socket, .. } = &self.group.sockets[usize::from(self.shared.shard.index)];
        for _ in 0..TURNS {
            let received = socket.try_io(Interest::ERROR, icmp::next);
            let Ok(error) = received else { return };
            if let Some(error) = error {
                let mut hub = self.shared.hub();
                let now = self.shared.clock.now();
                hub.on_unreachable(now, error.to, &error.begins, error.by_host);
            }
        }
    }

    /// Passes datagrams to the shards that own them. This shard's hub is unlocked, because no two hubs may be locked at
    /// once.
    fn hand_on(&mut self, now: Instant, metas: &[RecvMeta]) {
        for Datagram { from, ecn, bytes } in datagrams(metas, &mut self.buffers) {
            let Some(index) = self.shared.shard.other_shard(bytes) else { continue };
            let shard = &self.group.shards[index];
            shard.hub().handle_all(now, [Datagram { from, ecn, bytes }]);
            shard.work.notify_one();
        }
    }

    /// Sends pending datagrams; returns whether more are pending, and whether the socket is blocked.
    fn send(&mut self) -> io::Result<(bool, bool)> {
        for _ in 0..TURNS {
            if self.batch.count == 0 {
                self.fill();
            }
            let Some((to, ecn)) = self.batch.to else { return Ok((false, false)) };
            if let Some(own_queue) = self.lookout.on_sent(self.shared.clock.now(), to.peer) {
                self.socket().keep_own_queue_short(own_queue.is_some());
                self.shared.hub().set_own_queue(own_queue);
            }
            let transmit = Transmit {
                destination: to.peer,
                ecn: match ecn {
                    Ecn::NotEct => None,
                    Ecn::Ect0 => Some(EcnCodepoint::Ect0),
                    Ecn::Ect1 => Some(EcnCodepoint::Ect1),
                    Ecn::Ce => Some(EcnCodepoint::Ce),
                },
                contents: &self.batch.bytes,
                segment_size: (self.batch.count > 1).then_some(self.batch.segment),
                src_ip: to.host,
            };
            let Socket { socket, state } = &self.group.sockets[usize::from(self.shared.shard.index)];
            match state.try_send(socket.get_ref().into(), &transmit) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok((false, true)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The error may concern datagrams sent before this batch.
                Err(error)
                    if is_of_the_network(&error) && !std::mem::replace(&mut self.tried_again, true) => {}
                Err(error) if transmit.segment_size.is_some() && is_uncut(&error) => {
                    let passed = one_by_one(&transmit, |one| state.try_send(socket.get_ref().into(), one));
                    // Without a longer packet than the path takes, the same batch would have passed. And where none passes, as from an
                    // address that this host has lost, cutting is not what fails.
                    self.uncut += u32::from(passed && error.raw_os_error() != Some(Errno::EMSGSIZE as i32));
                    self.batch.clear();
                }
                // A datagram that cannot be sent counts as lost: it is too long for the path, or there is currently no
                // route.
                sent @ (Ok(()) | Err(_)) => {
                    if sent.is_ok() && transmit.segment_size.is_some() {
                        self.uncut = 0;
                    }
                    self.batch.clear();
                }
            }
        }
        Ok((true, false))
    }

    /// Fills a batch with datagrams that may be sent now.
    fn fill(&mut self) {
        self.batch.clear();
        self.tried_again = false;
        if let Some((to, ecn, bytes)) = self.next.take() {
            self.batch.add(to, ecn, &bytes);
        }
        let max_gso = if self.uncut < UNCUT_MAX { self.shared.max_gso } else { 1 };
        let (batch, next) = (&mut self.batch, &mut self.next);
        let mut bytes = std::mem::take(&mut batch.bytes);
        let mut hub = self.shared.hub();
        let now = self.shared.clock.now();
        hub.transmit(now, &mut bytes, |bytes, before, to, ecn| {
            let len = bytes.len() - before;
            if !batch.fits(to, ecn, len) {
                *next = Some((to, ecn, bytes.split_off(before)));
                return Turn::Pauses;
            }
            batch.note(to, ecn, len);
            let is_full =
                len < batch.segment || batch.count >= max_gso || bytes.len() + batch.segment > MAX_BATCH;
            if is_full { Turn::Ends } else { Turn::Goes }
        });
        drop(hub);
        batch.bytes = bytes;
    }
}

/// Waits until the send buffer of `socket` has room. Cancel safe.
async fn has_room(socket: &Socket, room: &mut Option<AsyncFd<UdpSocket>>) -> io::Result<()> {
    let room = match room {
        Some(room) => room,
        none => none.insert(socket.watch_room()?),
    };
    room.writable().await?.clear_ready();
    Ok(())
}

/// Batches that the call asks for which follows one that asked for `wanted` and got `count`. Each costs some 400 bytes of memory
/// that the call prepares.
fn next_wanted(wanted: usize, count: usize) -> usize {
    match count {
        _ if count == wanted => (wanted * 2).min(BATCH_SIZE),
        _ if count < wanted / 4 => (wanted / 2).max(WANTED_MIN),
        _ => wanted,
    }
}

/// The received datagrams in `buffers`.
fn datagrams<'a>(metas: &'a [RecvMeta], buffers: &'a mut [Vec<u8>]) -> impl Iterator<Item = Datagram<'a>> {
    metas.iter().zip(buffers).flat_map(|(meta, buffer)| {
        let datagrams = buffer[..meta.len].chunks_mut(meta.stride.max(1));
        let from = Route { peer: meta.addr, host: meta.dst_ip };
        datagrams.map(move |bytes| Datagram { from, ecn: mark(meta), bytes })
    })
}

/// ECN codepoint of the received datagrams.
fn mark(meta: &RecvMeta) -> Ecn {
    meta.ecn.map_or(Ecn::NotEct, |ecn| match ecn {
        EcnCodepoint::Ect0 => Ecn::Ect0,
        EcnCodepoint::Ect1 => Ecn::Ect1,
        EcnCodepoint::Ce => Ecn::Ce,
    })
}

impl Batch {
    fn clear(&mut self) {
        self.bytes.clear();
        (self.to, self.segment, self.count) = (None, 0, 0);
    }

    /// True if a datagram of `len` bytes may be added.
    fn fits(&self, to: Route, ecn: Ecn, len: usize) -> bool {
        self.count == 0 || (self.to == Some((to, ecn)) && len <= self.segment)
    }

    fn note(&mut self, to: Route, ecn: Ecn, len: usize) {
        if self.count == 0 {
            (self.to, self.segment) = (Some((to, ecn)), len);
        }
        self.count += 1;
    }

    fn add(&mut self, to: Route, ecn: Ecn, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.note(to, ecn, bytes.len());
    }
}

/// True for errors by which the system says that it cannot cut a batch (Linux `udp_send_skb`): `EIO` where a device or IPsec cannot,
/// `EINVAL` and `EMSGSIZE` where the first datagram is longer than the MTU of an interface.
fn is_uncut(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(errno, Some(Errno::EIO | Errno::EINVAL | Errno::EMSGSIZE))
}

/// Sends the datagrams of a batch one after the other. One that fails counts as lost. True if any left.
fn one_by_one(batch: &Transmit<'_>, mut send: impl FnMut(&Transmit<'_>) -> io::Result<()>) -> bool {
    let mut passed = false;
    for contents in batch.contents.chunks(batch.segment_size.unwrap_or(usize::MAX)) {
        let Transmit { destination, ecn, src_ip, .. } = *batch;
        passed |= send(&Transmit { destination, ecn, contents, segment_size: None, src_ip }).is_ok();
    }
    passed
}

/// True for ICMP errors of sent datagrams, which the system reports at the next call on the socket (RFC 1122 section
/// 4.1.3.3; Linux: `icmp_err_convert` and `icmpv6_err_convert`), and for an interrupted call. The socket remains usable
/// after these errors.
fn is_of_the_network(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(
        errno,
        Some(
            Errno::ECONNREFUSED
                | Errno::ECONNRESET
                | Errno::EHOSTUNREACH
                | Errno::ENETUNREACH
                | Errno::EHOSTDOWN
                | Errno::ENONET
                | Errno::ENOPROTOOPT
                | Errno::EOPNOTSUPP
                | Errno::EMSGSIZE
                | Errno::EPROTO
                | Errno::EACCES
                | Errno::EINTR
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn icmp_errors_end_no_socket() {
        // Most often a datagram that was too long for the path: ICMP reports this for MTU probes.
        for errno in [Errno::EMSGSIZE, Errno::ECONNREFUSED, Errno::EHOSTUNREACH, Errno::EPROTO, Errno::EACCES]
        {
            assert!(is_of_the_network(&errno.into()), "{errno}");
        }
        for errno in [Errno::EBADF, Errno::ENOMEM, Errno::ENOTCONN] {
            assert!(!is_of_the_network(&errno.into()), "{errno}");
        }
    }

    #[test]
    fn calls_ask_for_about_as_many_batches_as_arrive() {
        let after =
            |counts: &[usize]| counts.iter().fold(WANTED_MIN, |wanted, count| next_wanted(wanted, *count));
        assert_eq!(after(&[1, 1, 1]), 2);
        assert_eq!(after(&[2, 4, 8, 16, 32, 32]), 32);
        assert_eq!(after(&[2, 4, 8, 16, 20, 9]), 32);
        assert_eq!(after(&[2, 4, 8, 16, 1, 1, 1, 1, 1]), 4);
    }

    /// quinn#2399, quinn#2202: the system says that it cuts batches, and then an interface does not.
    #[test]
    fn a_batch_that_is_not_cut_leaves_datagram_by_datagram() {
        for errno in [Errno::EIO, Errno::EINVAL, Errno::EMSGSIZE] {
            assert!(is_uncut(&errno.into()), "{errno}");
        }
        assert!(!is_uncut(&Errno::EHOSTUNREACH.into()));
        let batch = Transmit {
            destination: ([192, 0, 2, 1], 1).into(),
            ecn: Some(EcnCodepoint::Ect0),
            contents: b"aaabbbcc",
            segment_size: Some(3),
            src_ip: Some([192, 0, 2, 9].into()),
        };
        let mut sent = Vec::new();
        let passed = one_by_one(&batch, |one| {
            assert_eq!((one.segment_size, one.ecn, one.src_ip), (None, batch.ecn, batch.src_ip));
            sent.push(one.contents.to_vec());
            // The second is lost, the others are not.
            if sent.len() == 2 { Err(Errno::EMSGSIZE.into()) } else { Ok(()) }
        });
        assert!(passed && sent == [&b"aaa"[..], b"bbb", b"cc"], "{sent:?}");
        assert!(!one_by_one(&batch, |_| Err(Errno::EINVAL.into())), "an address that this host has lost");
    }
}
