//! TCP-RRE: a sender that is controlled by the receive rate, derived from TCP timestamps, instead of the arrival of
//! ACKs (Leong, Xu, Leong and Wang, "Mitigating egregious ACK delays in cellular data networks by eliminating TCP ACK
//! clocking", ICNP 2013).
//!
//! The paper's text was not available. Statements from the slides are marked \[S\], values of an industrial sender that
//! follows them \[F\], and our own additions \[DERIVED\]; docs/design/rre.md has the details.
//!
//! [`Core`] does not use this crate: its inputs and outputs are numbers, so that a kernel can run the same algorithm in
//! C.

mod client;
mod clock;
mod compete;
mod core;
mod delay;
mod estimate;
mod feedback;
mod search;
mod states;
mod steering;

pub use self::core::{Ack, Core, Parameters, WORDS};
pub use client::{Client, SharedClient};
pub use clock::Trust;
pub use states::{Event, State};

use super::control::{CongestionControl, Pause, own_window};
use super::window::Window;
use super::{Delivery, Repair, Start};
use tacit_packet::units::{BitRate, Duration, Instant};

/// Options of TCP-RRE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Target buffer delay at 250 kb/s and below; above, it falls with the square root of the rate. `None`: 80 ms.
    pub target: Option<Duration>,
    /// Which connections share a memory.
    pub memory: Memory,
}

/// Which connections share what they find out about their client's uplink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// Those to the same address; all clients of a scenario have one, as behind a NAT, or are in one IPv6 prefix.
    #[default]
    Address,
    /// Those to the same client.
    Client,
    /// None.
    None,
}

/// The controller.
#[derive(Clone, Debug)]
pub(crate) struct Rre {
    window: Window,
    core: Core,
    client: Option<SharedClient>,
    /// The handshake measured the round-trip time.
    is_measured: bool,
}

impl Rre {
    pub fn new(window: Window, config: Config, start: Start) -> Self {
        let parameters = Parameters {
            mss: bytes(window.mss),
            initial_window: bytes(window.cwnd),
            handshake_rtt_us: start.rtt.map_or(0, micros),
            sender_tick_us: micros(start.tick),
            target_us: config.target.map_or(0, micros),
        };
        let now_us = micros_at(start.at);
        let mut core = Core::new(parameters, now_us);
        if let Some(stamps) = start.stamps {
            core.on_handshake(now_us, stamps.receiver, stamps.sender);
        }
        let mut rre = Self { window, core, client: None, is_measured: start.rtt.is_some() };
        rre.update_window();
        rre
    }

    /// Shares what is known of `client` from now on.
    pub fn recall(&mut self, client: SharedClient, now: Instant) {
        // A repeated handshake measures no round-trip time.
        self.core.recall(&client.get(), micros_at(now), !self.is_measured);
        self.client = Some(client);
        self.update_window();
    }

    fn update_window(&mut self) {
        self.window.cwnd = self.core.window();
    }
}

impl CongestionControl for Rre {
    own_window!();

    fn wants_delivery(&self) -> bool {
        true
    }

    fn on_delivery(&mut self, delivery: &Delivery) {
        let sample = &delivery.sample;
        self.core.on_ack(&Ack {
            now_us: micros_at(delivery.now),
            stamped: delivery.stamps.is_some(),
            value: delivery.stamps.map_or(0, |stamps| stamps.receiver),
            echo: delivery.stamps.map_or(0, |stamps| stamps.sender),
            advanced: delivery.advanced,
            delivered: bytes(sample.newly_delivered),
            lost: bytes(delivery.lost),
            in_flight: bytes(delivery.in_flight),
            rtt_us: sample.rtt.map_or(0, micros),
            smoothed_rtt_us: delivery.smoothed_rtt.map_or(0, micros),
            limited: sample.app_limited,
            repairing: delivery.repair != Repair::None,
        });
        if self.core.has_evidence()
            && let Some(client) = &self.client
        {
            client.change(|client| self.core.update_client(client));
        }
        self.update_window();
    }

    fn on_timeout(&mut self, now: Instant, _flight: u64) {
        self.core.on_timeout(micros_at(now));
        self.update_window();
    }

    fn on_undo(&mut self, _cwnd_before: u64) {
        self.core.on_undo();
        self.update_window();
    }

    fn on_transmit_start(&mut self, now: Instant, pause: Pause) {
        if pause != Pause::SlowRate {
            self.core.on_transmit_start(micros_at(now));
            self.update_window();
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.core.next_silence_us().map(|at_us| Instant::ZERO + Duration::from_micros(at_us))
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.core.on_silence(micros_at(now));
        self.update_window();
    }

    fn in_start_up(&self) -> bool {
        self.core.state() == State::Start
    }

    fn state(&self) -> Option<&'static str> {
        Some(self.core.state().name())
    }

    fn pacing_rate(&self, _smoothed_rtt: Option<Duration>, _in_flight: u64) -> Option<BitRate> {
        Some(BitRate::from_bps(self.core.rate() * 8))
    }
}

/// Saturates at the largest amount that 32 bits can hold.
fn bytes(amount: u64) -> u32 {
    u32::try_from(amount).unwrap_or(u32::MAX)
}

fn micros(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}

fn micros_at(now: Instant) -> u64 {
    now.as_nanos() / 1_000
}
