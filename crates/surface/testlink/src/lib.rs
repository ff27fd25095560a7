//! A deterministic Wi-Fi or mobile link between two protocols in a test: no sockets, no clock, no root.
//!
//! The link is a scenario of tacit's: its first client and its server are the two ends, and what else the scenario has
//! (the wire, the access point, other clients) is between and beside them. Time is the caller's. Equal input gives equal
//! output, to the bit.
//!
//! ```
//! use std::time::Duration;
//! use tacit_testlink::{End, Testlink};
//!
//! let mut link = Testlink::over("wlan-11ax-1200").set("wired.delay=20 ms").seed(7).build()?;
//! link.send(Duration::ZERO, End::Client, b"ping".to_vec())?;
//! while let Some(now) = link.next_event() {
//!     link.advance(now)?;
//!     if let Some((End::Server, datagram)) = link.receive() {
//!         assert_eq!(datagram, b"ping");
//!         assert!(now > Duration::from_millis(20));
//!         break;
//!     }
//! }
//! # Ok::<(), tacit_testlink::TestlinkError>(())
//! ```
//!
//! With the feature `tokio`, [`Builder::sockets`] gives two sockets whose time is tokio's clock. Paused, it passes as fast as
//! the machine computes.

mod frame;
#[cfg(feature = "tokio")]
mod sockets;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use frame::{Datagram, Frame};
use tacit_packet::units::{self, HostId, Instant};
use tacit_scenario::{InputError, MAX_CLIENTS, RunSpec, Scenario, ScenarioError, Subject, scheme};
use tacit_sim::{RunError, World};

#[cfg(feature = "tokio")]
pub use sockets::{MOST_WAITING, Socket};

/// Most bytes of a datagram: what an IPv4 packet of 1500 bytes holds behind its header (20 bytes, RFC 791) and that of
/// UDP (8 bytes, RFC 768).
pub const MOST_BYTES: usize = 1500 - HEADERS as usize;
/// Bytes of the headers that a datagram has on the links.
const HEADERS: u64 = 20 + 8;

/// Duration of the world. A test ends before, so this is a century.
const FOREVER: units::Duration = units::Duration::from_secs(100 * 365 * 86_400);

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// The station, or the mobile device.
    Client,
    /// The server on the wire behind the access point.
    Server,
}

impl End {
    /// The end that hears this one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// Why there is no link, or no further step of it.
#[derive(Debug, thiserror::Error)]
pub enum TestlinkError {
    /// The scenario, a setting or the scheme is not allowed.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The scenario makes no world, or the world broke an invariant, which is a defect of tacit.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A datagram is too long for the link.
    #[error("a datagram of {0} bytes: up to {MOST_BYTES} are allowed")]
    TooLong(usize),
    /// The runtime in which a socket's link began has ended.
    #[error("the runtime in which this link began has ended")]
    Ended,
}

impl From<InputError> for TestlinkError {
    fn from(error: InputError) -> Self {
        Self::Scenario(error.into())
    }
}

/// The parts of a link.
#[derive(Clone, Debug)]
pub struct Builder {
    scenario: String,
    settings: Vec<String>,
    scheme: Option<String>,
    background: u32,
    seed: u64,
}

impl Builder {
    /// Changes a key of the scenario, as `--set` of the program: `wired.delay=20 ms`.
    #[must_use]
    pub fn set(mut self, assignment: &str) -> Self {
        self.settings.push(assignment.to_owned());
        self
    }

    /// Applies a scheme, such as `hack-batch`. Its transport is that of the simulated clients alone.
    #[must_use]
    pub fn scheme(mut self, name: &str) -> Self {
        self.scheme = Some(name.to_owned());
        self
    }

    /// Adds simulated clients that compete with this one, with the scenario's traffic.
    #[must_use]
    pub fn background(mut self, clients: u32) -> Self {
        self.background = clients;
        self
    }

    /// The seed of all draws; 1 unless it is given.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The link at time zero.
    ///
    /// # Errors
    /// If the scenario, a setting, the scheme or the number of clients is not allowed.
    pub fn build(&self) -> Result<Testlink, TestlinkError> {
        InputError::check_range("background", self.background, 0..=MAX_CLIENTS - 1)?;
        let mut scenario = Scenario::load(&self.scenario, &self.settings)?;
        // Flows of others start with the link: a test has no duration relative to which they could be late.
        scenario.stagger = units::Duration::ZERO;
        let scheme = self.scheme.as_deref().map(|name| scheme::find("scheme", name)).transpose()?;
        let subject = Subject::new(Arc::new(scenario), scheme.unwrap_or(&scheme::AS_WRITTEN));
        let mut setup = RunSpec::new(Arc::new(subject), self.background + 1, self.seed).setup()?;
        let client = Scenario::first_client(&setup);
        setup.retain_flows(|flow| flow.source != client && flow.sink != client);
        setup.duration = FOREVER;
        setup.measure_from = Instant::ZERO;
        Ok(Testlink { world: World::new(&setup, None)?, client, now: Instant::ZERO, sent: 0 })
    }
}

/// A link between two ends. Its time is the duration since its beginning, which the caller says.
///
/// A time before one that was given counts as that one.
pub struct Testlink {
    world: World<'static, Frame>,
    client: HostId,
    now: Instant,
    /// Number of datagrams sent.
    sent: u64,
}

impl fmt::Debug for Testlink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Testlink")
            .field("now", &self.now)
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}

impl Testlink {
    /// Begins a link over a scenario: the name of a bundled one, a path, or TOML text with a line break.
    pub fn over(scenario: &str) -> Builder {
        Builder { scenario: scenario.to_owned(), settings: Vec::new(), scheme: None, background: 0, seed: 1 }
    }

    /// `from` sends a datagram, which the other end receives later, or never: links lose what their queues do not hold.
    ///
    /// # Errors
    /// [`TestlinkError::TooLong`] above [`MOST_BYTES`]; and as [`Testlink::advance`].
    pub fn send(
        &mut self,
        now: Duration,
        from: End,
        datagram: impl Into<Vec<u8>>,
    ) -> Result<(), TestlinkError> {
        let bytes = datagram.into();
        if bytes.len() > MOST_BYTES {
            return Err(TestlinkError::TooLong(bytes.len()));
        }
        self.advance(now)?;
        self.sent += 1;
        let (source, destination) = (self.host(from), self.host(from.other()));
        let datagram = Datagram { source, destination, number: self.sent, bytes: bytes.into() };
        self.world.inject(self.now, source, Frame::Sent(datagram));
        Ok(())
    }

    /// When the link has something to do next. Beacons and other clients need no datagrams for that.
    pub fn next_event(&mut self) -> Option<Duration> {
        self.world.poll_timeout().map(|at| Duration::from_nanos(at.as_nanos()))
    }

    /// Does everything due by `now`.
    ///
    /// # Errors
    /// [`TestlinkError::Run`] where an invariant broke, which is a defect of tacit.
    pub fn advance(&mut self, now: Duration) -> Result<(), TestlinkError> {
        Ok(self.step(now)?)
    }

    fn step(&mut self, now: Duration) -> Result<(), RunError> {
        let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.now = self.now.max(Instant::from_nanos(nanos));
        self.world.handle_timeout(self.now)
    }

    /// The next datagram that has arrived, and the end that got it. Drain it to `None` after each [`Testlink::advance`].
    pub fn receive(&mut self) -> Option<(End, Vec<u8>)> {
        loop {
            let arrived = self.world.poll_arrived()?;
            if let Frame::Sent(datagram) = arrived.packet {
                let end = if arrived.host == self.client { End::Client } else { End::Server };
                return Some((end, datagram.bytes.to_vec()));
            }
        }
    }

    fn host(&self, end: End) -> HostId {
        match end {
            End::Client => self.client,
            End::Server => Scenario::SERVER,
        }
    }
}
