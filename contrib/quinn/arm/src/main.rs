//! quinn as it is, and quinn with the patch: the ACK law of tacit-ack requests while the connection lives, over CUBIC and over
//! the controller of tacit-quinn. The link is simulated, so that times are exact.

mod two_ends;

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::congestion::{Controller, ControllerFactory, CubicConfig};
use quinn_proto::{AckFrequencyConfig, RttEstimator, TransportConfig, VarInt};
use tacit_ack::{AckClock, Arriving, Bytes, Request, Requests, Sending};
use two_ends::{Link, Took, Trust, transfer};

const KB: usize = 1_000;
const MB: usize = 1_000_000;

/// Any controller, and the law.
struct Asking {
    inner: Box<dyn Controller>,
    requests: Requests,
    began: Instant,
    mtu: u16,
    rtt_min: Duration,
    rtt: Duration,
    wanted: Option<AckFrequencyConfig>,
}

fn of_core(time: Duration) -> tacit_ack::Duration {
    tacit_ack::Duration::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

impl Controller for Asking {
    fn on_sent(&mut self, now: Instant, bytes: u64, last: u64) {
        self.inner.on_sent(now, bytes, last);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        (self.rtt_min, self.rtt) = (rtt.min(), rtt.get());
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.inner.on_end_acks(now, in_flight, app_limited, largest);
        let arriving = Arriving {
            rtt_min: of_core(self.rtt_min),
            queueing: of_core(self.rtt.saturating_sub(self.rtt_min)),
            packet: Bytes(self.mtu.into()),
            ..Arriving::default()
        };
        let sending = Sending { arriving, window: Bytes(self.inner.window()) };
        let now = tacit_ack::Instant::from_nanos(of_core(now - self.began).as_nanos());
        let Some(Request { packets, delay }) = self.requests.on_acks(now, &sending) else { return };
        let mut wanted = AckFrequencyConfig::default();
        wanted
            .ack_eliciting_threshold(VarInt::from_u32(packets - 1))
            .max_ack_delay(Some(Duration::from_nanos(delay.as_nanos())));
        self.wanted = Some(wanted);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost: u64) {
        self.inner.on_congestion_event(now, sent, is_persistent, lost);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu;
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn ack_frequency(&self) -> Option<AckFrequencyConfig> {
        self.wanted.clone()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            inner: self.inner.clone_box(),
            requests: self.requests.clone(),
            wanted: self.wanted.clone(),
            ..*self
        })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

struct AskingOver(Arc<dyn ControllerFactory + Send + Sync>);

impl ControllerFactory for AskingOver {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Asking {
            inner: self.0.clone().build(now, mtu),
            requests: Requests::new(AckClock::USUAL),
            began: now,
            mtu,
            rtt_min: Duration::ZERO,
            rtt: Duration::ZERO,
            wanted: None,
        })
    }
}

fn with(controller: Arc<dyn ControllerFactory + Send + Sync>) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(controller);
    Arc::new(transport)
}

fn per_100(took: &Took) -> f64 {
    100.0 * took.acks as f64 / took.packets as f64
}

fn main() {
    let trust = Trust::new().unwrap();
    let plain = Arc::new(TransportConfig::default());
    let arms = [
        with(Arc::new(tacit_quinn::Tack::default())),
        with(Arc::new(AskingOver(Arc::new(CubicConfig::default())))),
        with(Arc::new(AskingOver(Arc::new(tacit_quinn::Tack::default())))),
    ];
    let most = std::env::args().nth(1).map_or(10 * MB, |text| text.parse().unwrap());
    println!("Times over plain quinn's; ACKs per 100 packets.");
    println!("rtt,ms lost,%     kB  plain,ms ACKs |  Tack ACKs | law, CUBIC ACKs | law, Tack ACKs");
    for (micros, mbps) in [(100, 1_000), (2_000, 1_000), (20_000, 100), (80_000, 100), (200_000, 100)] {
        for lost_per_mille in [0, 10] {
            for bytes in [10 * KB, 100 * KB, MB, 10 * MB, 100 * MB] {
                if bytes > most {
                    continue;
                }
                let link = Link {
                    rtt: Duration::from_micros(micros),
                    bits_per_s: mbps * 1_000_000,
                    up_bits_per_s: mbps * 1_000_000,
                    queue_bytes: 1_500_000,
                    lost_per_mille,
                    losses: 0,
                };
                let base = transfer(&trust, link, (&plain, &plain), bytes).unwrap();
                print!(
                    "{:>6} {:>6} {:>6} {:>9.1} {:>4.1}",
                    micros as f64 / 1e3,
                    lost_per_mille as f64 / 10.0,
                    bytes / KB,
                    base.time.as_secs_f64() * 1e3,
                    per_100(&base)
                );
                for (arm, width) in arms.iter().zip([5, 10, 9]) {
                    let took = transfer(&trust, link, (&plain, arm), bytes).unwrap();
                    let ratio = took.time.as_secs_f64() / base.time.as_secs_f64();
                    print!(" | {ratio:>width$.3} {:>4.1}", per_100(&took));
                }
                println!();
            }
        }
    }
    println!("\nMb/s of 20 MB at 10 Mb/s down and 40 ms, by the rate up; queues of 100 kB.");
    println!("up,kb/s  plain | Tack | law, CUBIC | law, Tack");
    for up_kbps in [100, 200, 300, 400] {
        let link = Link {
            rtt: Duration::from_millis(40),
            bits_per_s: 10_000_000,
            up_bits_per_s: up_kbps * 1_000,
            queue_bytes: 100_000,
            lost_per_mille: 0,
            losses: 0,
        };
        print!("{up_kbps:>7}");
        for (arm, width) in std::iter::once(&plain).chain(&arms).zip([6, 4, 10, 9]) {
            let took = transfer(&trust, link, (&plain, arm), 20 * MB).unwrap();
            print!(" {:>width$.2} |", 160.0 / took.time.as_secs_f64());
        }
        println!();
    }
}
