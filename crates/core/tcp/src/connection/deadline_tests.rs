//! The driver of a connection calls a controller that acts when no ACK arrives.

use super::*;
use tacit_congestion::Controller;
use tacit_packet::units::{Duration, FlowId, HostId};

const MSS: u64 = 1460;
/// As long as [`Controller::alarm`] waits for an ACK.
const PATIENCE: Duration = Duration::from_millis(50);

/// A client whose controller halves its window after [`PATIENCE`] without an ACK, and a server that answers it.
struct Pair {
    now: Instant,
    client: Connection,
    server: Connection,
}

impl Pair {
    fn connected() -> Self {
        let config = Config { timestamps: false, ..Config::default() };
        let near = Ends { flow: FlowId(1), local: HostId(1), remote: HostId(2) };
        let far = Ends { local: near.remote, remote: near.local, ..near };
        let now = Instant::ZERO;
        let mut pair = Self {
            now,
            client: Connection::connect(config, near, SeqNumber(7), now),
            server: Connection::listen(config, far, SeqNumber(9)),
        };
        pair.exchange();
        assert_eq!(pair.client.state(), State::Established);
        for end in [&mut pair.client, &mut pair.server] {
            end.sender.congestion = Controller::alarm(&config.congestion, MSS as u32);
        }
        pair
    }

    /// Delivers packets until neither end sends any.
    fn exchange(&mut self) {
        loop {
            if let Some(packet) = self.client.poll_transmit(self.now) {
                self.server.handle_packet(self.now, packet);
            } else if let Some(packet) = self.server.poll_transmit(self.now) {
                self.client.handle_packet(self.now, packet);
            } else {
                return;
            }
        }
    }

    /// Drops everything that the client sends now; returns the number of packets.
    fn lose_all(&mut self) -> usize {
        core::iter::from_fn(|| self.client.poll_transmit(self.now)).count()
    }

    /// Advances to the client's next deadline; returns the elapsed time and the resulting window.
    fn next_deadline(&mut self) -> (Duration, u64) {
        let at = self.client.poll_timeout().expect("something is due");
        let waited = at.saturating_since(self.now);
        self.now = at;
        self.client.handle_timeout(at);
        (waited, self.client.counters().cwnd / MSS)
    }
}

#[test]
fn a_controller_is_called_though_no_ack_comes() {
    let mut pair = Pair::connected();
    pair.client.write(100 * MSS);
    assert_eq!(pair.lose_all(), 10);
    // Before the retransmission timeout, which is at least 200 ms.
    for window in [5, 2, 1] {
        assert_eq!(pair.next_deadline(), (PATIENCE, window));
    }
    assert_eq!(pair.client.counters().timeouts, 0);
    // Called early it does nothing, and the connection's own timers are unchanged.
    pair.client.handle_timeout(pair.now);
    assert_eq!(pair.next_deadline().0, PATIENCE);
    assert_eq!(pair.client.counters().timeouts, 1);
}

#[test]
fn an_ack_puts_the_controller_off() {
    let mut pair = Pair::connected();
    pair.client.write(MSS);
    pair.exchange();
    pair.now += PATIENCE / 2;
    pair.client.write(MSS);
    pair.lose_all();
    assert_eq!(pair.next_deadline(), (PATIENCE, 5), "counted from the second flight");
}

/// Nothing is in flight, so no ACK is due, and the connection has no deadline.
#[test]
fn a_connection_at_rest_does_not_wake_for_its_controller() {
    let mut pair = Pair::connected();
    pair.client.write(MSS);
    pair.exchange();
    assert_eq!(pair.client.poll_timeout(), None);
}

#[test]
fn a_connection_that_ended_does_not_wake_for_its_controller() {
    let mut pair = Pair::connected();
    pair.client.write(MSS);
    pair.lose_all();
    assert_eq!(pair.client.poll_timeout(), Some(pair.now + PATIENCE));
    pair.client.abort();
    assert_eq!(pair.client.poll_timeout(), None);
}
