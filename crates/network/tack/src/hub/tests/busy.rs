//! Sessions that their users have locked while the hub needs them.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Condvar, Mutex};

use super::*;
use crate::slot::Marks;

/// The user releases a session, and the hub is notified.
fn released(hub: &mut Hub, slot: &Slot) {
    let marks = Marks::default();
    assert!(marks.mark(slot), "no mark was left behind");
    hub.take_marks(&marks);
}

#[test]
fn a_slot_is_marked_once_until_the_hub_takes_the_mark_in() {
    let mut net = Net::new();
    let client = net.connect();
    net.run(Duration::from_secs(1));
    let (slot, marks) = (net.client.slot(client).unwrap(), Marks::default());
    for _ in 0..3 {
        assert!(marks.mark(&slot));
        assert!(!marks.mark(&slot) && !marks.mark(&slot), "the driver was woken already");
        assert_eq!(*marks.numbers(), [client]);
        assert!(!net.client.has_work());
        net.client.take_marks(&marks);
        assert!(marks.numbers().is_empty() && net.client.has_work());
        net.drain();
    }
}

#[test]
fn the_mark_of_a_connection_that_is_gone_is_passed_over() {
    let mut net = Net::new();
    let client = net.connect();
    net.run(Duration::from_secs(1));
    let (slot, marks) = (net.client.slot(client).unwrap(), Marks::default());
    slot.lock().close(0, "");
    slot.lock().handles = 0;
    marks.mark(&slot);
    net.client.take_marks(&marks);
    net.run(Duration::from_secs(1));
    assert_eq!(net.client.len(), 0);
    marks.mark(&slot);
    net.client.take_marks(&marks);
    assert!(!net.client.has_work() && net.client.is_idle());
}

/// Counts how often the hub sent data for a user that waits for it.
#[derive(Default)]
struct Sent {
    times: Mutex<u64>,
    grew: Condvar,
}

impl Sent {
    /// Spins before the user sleeps. Most calls are sent meanwhile, so that the next call arrives while the driver is
    /// still awake.
    const LOOKS: u32 = 1_000;
    /// A call that is not sent within this time was missed: even on a busy machine the driver runs much sooner.
    const MISSED: std::time::Duration = std::time::Duration::from_secs(60);

    fn add(&self) {
        *self.times.lock().unwrap() += 1;
        self.grew.notify_one();
    }

    /// Waits until data was sent `times` times; returns false after a timeout.
    fn reaches(&self, times: u64) -> bool {
        for _ in 0..Self::LOOKS {
            if *self.times.lock().unwrap() >= times {
                return true;
            }
            std::thread::yield_now();
        }
        let sent = self.times.lock().unwrap();
        let (sent, _) = self.grew.wait_timeout_while(sent, Self::MISSED, |sent| *sent < times).unwrap();
        *sent >= times
    }
}

/// Users of four connections, each waiting after a call until the hub has sent its data, and a driver that
/// sleeps unless it is woken. No timer or datagram would make up for a missed call.
#[test]
fn no_call_is_missed() {
    const CALLS: u64 = 20_000;
    let mut net = Net::new();
    let mut slots: Vec<Arc<Slot>> = Vec::new();
    let users = [(); 4].map(|()| {
        let (client, mut initiation) = (net.connect(), Vec::new());
        assert!(net.client.poll_transmit(net.now, &mut initiation).is_some());
        net.server.handle(net.now, client_address(), Ecn::NotEct, &mut initiation.clone());
        assert!(net.server.poll_transmit(net.now, &mut Vec::new()).is_some(), "a response");
        let is_new = |id: &u32| slots.iter().all(|slot| slot.id != *id);
        let slot = net.server.slot(net.server.ids().into_iter().find(is_new).unwrap()).unwrap();
        slots.push(slot.clone());
        (client, slot, initiation)
    });
    let sent = [(); 4].map(|()| Sent::default());
    let (hub, now, marks) = (Mutex::new(net.server), net.now, Marks::default());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let driver = scope.spawn(|| {
            while !is_over.load(SeqCst) {
                let mut hub = hub.lock().unwrap();
                hub.take_marks(&marks);
                hub.transmit(now, &mut Vec::new(), |bytes, before, _, _| {
                    let (_, number, _) = addressed(&bytes[before..]).unwrap();
                    let user = users.iter().position(|(client, ..)| *client == number.0).unwrap();
                    sent[user].add();
                    Turn::Goes
                });
                drop(hub);
                std::thread::park();
            }
        });
        let marks = &marks;
        let users = users.iter().zip(&sent).map(|((_, slot, initiation), sent)| {
            let driver = driver.thread().clone();
            scope.spawn(move || {
                let initiation = Initiation::parse(initiation).expect("a client made it");
                for call in 1..=CALLS {
                    // Repeats the response.
                    slot.lock().on_initiation(&initiation);
                    if marks.mark(slot) {
                        driver.unpark();
                    }
                    assert!(sent.reaches(call), "call {call} is missed");
                }
            })
        });
        let users: Vec<_> = users.collect();
        let failed = users.into_iter().filter_map(|user| user.join().err()).count();
        is_over.store(true, SeqCst);
        driver.thread().unpark();
        assert_eq!(failed, 0);
    });
}

/// The server's user holds the session for 50 ms in the middle of a transfer. The hub neither waits nor retries, and
/// delivers all datagrams when the user is done, with their times of arrival.
#[test]
fn datagrams_wait_while_a_user_holds_the_session() {
    let mut net = Net::new();
    net.begin(100_000);
    net.run(Duration::from_millis(7));
    let server = net.server.accept().expect("a client connected");
    net.server.accepted.push_back(server);
    let slot = net.server.slot(server).unwrap();
    let session = slot.lock();
    let before = session.stats().delivered_bytes;
    net.run(Duration::from_millis(50));
    assert_eq!(session.stats().delivered_bytes, before);
    drop(session);
    assert!(!net.server.has_work(), "it was passed by");
    let waiting = &net.server.entries[&server].backlog;
    assert!(!waiting.is_empty(), "the test has something arrive");
    released(&mut net.server, &slot);
    assert!(net.server.has_work(), "it is looked at again");
    net.drain();
    assert!(slot.lock().stats().delivered_bytes > before);
    assert!(net.server.entries[&server].backlog.is_empty());
    drop(slot);
    net.run(Duration::from_secs(5));
    assert!(net.read() == (payload(100_000), true));
    // 5 ms in each direction, without the 50 ms that datagrams waited.
    let rtt = net.server.get(server).unwrap().connection_stats().min_rtt;
    assert!(rtt.is_none_or(|rtt| rtt < std::time::Duration::from_millis(20)), "{rtt:?}");
}

/// If the socket is blocked, events and timers are still handled once the user is done.
#[test]
fn waiting_datagrams_are_taken_in_without_a_chance_to_send() {
    let mut net = Net::new();
    let (client, _) = net.begin(20_000);
    net.run(Duration::from_millis(7));
    let slot = net.client.slot(client).unwrap();
    let session = slot.lock();
    let received = session.stats().packets_received;
    net.run(Duration::from_millis(50));
    drop(session);
    assert_eq!(slot.lock().stats().packets_received, received);
    released(&mut net.client, &slot);
    net.client.handle_timeout(net.now);
    assert!(slot.lock().stats().packets_received > received);
}

/// The client's deadline passes while its user has the session: it takes effect when the user is done, and wakes no
/// task before.
#[test]
fn a_deadline_that_passes_meanwhile_stays_due() {
    let mut net = Net::new();
    net.lose = |_| true;
    let client = net.connect();
    net.run(Duration::from_secs(1));
    let slot = net.client.slot(client).unwrap();
    let session = slot.lock();
    net.run(Duration::from_secs(60));
    assert_eq!(session.alive(), Ok(()));
    drop(session);
    assert_eq!(net.client.poll_timeout(), None, "the driver is woken by the user alone");
    released(&mut net.client, &slot);
    net.run(Duration::from_millis(0));
    assert_eq!(slot.lock().alive(), Err(ConnectionError::TimedOut));
}

/// A connection with a busy user is skipped, and does not delay others.
#[test]
fn others_go_on_meanwhile() {
    let mut net = Net::new();
    let busy = net.connect();
    net.run(Duration::from_secs(1));
    assert!(net.server.accept().is_some());
    let slot = net.client.slot(busy).unwrap();
    let session = slot.lock();
    net.begin(100_000);
    net.run(Duration::from_secs(5));
    assert!(net.read() == (payload(100_000), true));
    drop(session);
}

/// Memory is exhausted while the user of the largest stream has its session: the stream is reset when the user is done.
#[test]
fn the_fullest_stream_is_given_up_when_its_user_is_done() {
    const MAX: u64 = 160 << 10;
    let mut net = Net::new();
    let mut config = Config::default();
    config.max_memory(MAX);
    net.server = server(&config, &net.server_identity);
    let clients = [(); 2].map(|()| net.connect());
    net.run(Duration::from_secs(1));
    let writes = |net: &mut Net, client, len| {
        let session = net.client.session(client).unwrap();
        let stream = session.open().unwrap().unwrap();
        assert_eq!(session.write(stream, &payload(len)), Ok(Some(len)));
        net.run(Duration::from_millis(200));
    };
    writes(&mut net, clients[0], 90_000);
    let held = |net: &Net, id| net.server.entries[&id].share.held;
    let fullest = [net.server.accept(), net.server.accept()].map(Option::unwrap);
    let fullest = fullest.into_iter().max_by_key(|id| held(&net, *id)).unwrap();
    let slot = net.server.slot(fullest).unwrap();
    let session = slot.lock();
    writes(&mut net, clients[1], 60_000);
    assert!(net.server.memory.held() > MAX, "the test fills it: {} bytes", net.server.memory.held());
    assert_eq!(net.server.counters.streams_given_up, 0);
    drop(session);
    released(&mut net.server, &slot);
    net.drain();
    assert_eq!((net.server.counters.streams_given_up, held(&net, fullest)), (1, 0));
    assert!((60_000..MAX).contains(&net.server.memory.held()), "{} bytes", net.server.memory.held());
}

/// An ICMP error that arrives meanwhile takes effect afterwards.
#[test]
fn an_icmp_error_waits_for_the_user() {
    let mut net = Net::new();
    net.lose = |_| true;
    let client = net.connect();
    net.drain();
    let first = net.seen.first().expect("an initiation left").2.clone();
    let slot = net.client.slot(client).unwrap();
    let session = slot.lock();
    net.client.on_unreachable(net.now, server_address(), &first, true);
    drop(session);
    released(&mut net.client, &slot);
    net.run(Duration::from_millis(700));
    assert_eq!(slot.lock().alive(), Err(ConnectionError::Unreachable));
}
