//! ACK policies, controllers and schedulers written in Python, as the simulator takes them.
//!
//! Each call takes the interpreter for a moment. An exception of Python ends the experiment: nothing more is asked, and the call
//! that made the run raises it.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tacit_link::wifi as mu;
use tacit_proto::congestion::external as control;
use tacit_proto::factory::{FactoryRef, Named};
use tacit_proto::tcp::AckDecision;
use tacit_proto::tcp::ack_policy::external as acks;
use tacit_proto::units::{BitRate, Bytes, Duration, Instant};

use crate::slot::{Free, Slot, Taken};

/// Makes policies or controllers: a class, or any callable.
pub struct Maker {
    make: Py<PyAny>,
    name: String,
    failed: Mutex<Option<PyErr>>,
}

static FREE: Free<Maker> = Mutex::new(Vec::new());

/// A maker in its place for the time of a run.
pub struct ExternalMaker(Taken<Maker>, Arc<Maker>);

impl ExternalMaker {
    pub fn new(make: &Bound<'_, PyAny>) -> PyResult<Self> {
        if !make.is_callable() {
            let what =
                "a class of policies, controllers or schedulers, or a callable that makes such objects";
            return Err(PyValueError::new_err(format!("{}: allowed: {what}", make.repr()?)));
        }
        let name =
            make.getattr("__name__").and_then(|name| name.extract()).unwrap_or_else(|_| "?".to_owned());
        let maker = Arc::new(Maker { make: make.clone().unbind(), name, failed: Mutex::new(None) });
        Ok(Self(Taken::new(&FREE, maker.clone()), maker))
    }

    pub fn acks(&self) -> acks::External {
        FactoryRef(self.0.slot)
    }

    pub fn control(&self) -> control::External {
        FactoryRef(self.0.slot)
    }

    pub fn scheduler(&self) -> mu::ExternalMuScheduler {
        FactoryRef(self.0.slot)
    }

    pub fn name(&self) -> &str {
        &self.1.name
    }

    /// The exception that Python raised.
    pub fn failure(&self) -> Option<PyErr> {
        self.1.failed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Maker {
    /// The result of `call`, unless Python has raised something before or does now.
    fn ask<T>(&self, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        if self.failed.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return None;
        }
        match Python::attach(call) {
            Ok(answer) => Some(answer),
            Err(error) => {
                *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                None
            }
        }
    }

    fn made(
        &self,
        arguments: impl for<'py> FnOnce(Python<'py>, &Py<PyAny>) -> PyResult<Py<PyAny>>,
    ) -> Option<Py<PyAny>> {
        self.ask(|py| arguments(py, &self.make))
    }
}

fn seconds(time: Instant) -> f64 {
    time.as_nanos() as f64 / 1e9
}

/// A time in seconds as Python gives it.
fn duration(seconds: f64) -> PyResult<Duration> {
    /// A day: longer than any run.
    const MOST: f64 = 86_400.0;
    if !(0.0..=MOST).contains(&seconds) {
        return Err(PyValueError::new_err(format!("{seconds} s; allowed: 0 to {MOST} s")));
    }
    Ok(Duration::from_nanos((seconds * 1e9).round() as u64))
}

/// A segment with new data, as a receiver's policy sees it. Times are in seconds.
#[pyclass(module = "tacit._native", frozen, get_all)]
pub struct Arrival {
    /// When it came, since the start of the run.
    now: f64,
    /// Bytes of it that are new.
    new_bytes: u64,
    /// It is neither above a gap nor fills one.
    in_order: bool,
    /// Bytes that wait behind gaps, after it.
    waiting_bytes: u64,
    /// The smallest round-trip time that the receiver has seen.
    rtt_min: Option<f64>,
    /// The smoothed round-trip time, as the receiver sees it.
    smoothed_rtt: Option<f64>,
}

/// Contents of one ACK as told to a sender. Times are in seconds.
#[pyclass(module = "tacit._native", frozen, get_all)]
pub struct Acknowledged {
    /// When it came, since the start of the run.
    now: f64,
    /// Bytes that it newly reports, cumulatively or selectively.
    delivered_bytes: u64,
    /// Bytes delivered since the connection began.
    delivered_total_bytes: u64,
    /// Bytes newly held lost.
    lost_bytes: u64,
    /// Bytes thought to be in the network before it.
    prior_in_flight_bytes: u64,
    /// Bytes thought to be in the network after it.
    in_flight_bytes: u64,
    /// Round-trip time of the newest segment it reports, where that is unambiguous.
    rtt: Option<f64>,
    /// Smoothed round-trip time.
    smoothed_rtt: Option<f64>,
    /// The rate of delivery that the sender measured, where it could.
    delivery_rate_bps: Option<u64>,
    /// The rate of arrival that the receiver reports (TACK).
    receiver_rate_bps: Option<u64>,
    /// The application set the pace: rates say little of the path.
    application_limited: bool,
    /// Losses are being repaired.
    in_recovery: bool,
}

impl Named for Slot<Maker> {
    fn name(&self) -> &'static str {
        "brought by Python"
    }
}

/// An object and its maker; nothing where it could not be made.
type Made = Option<(Arc<Maker>, Py<PyAny>)>;

/// The object from the maker in `slot`, called without arguments.
fn made_alone(slot: &Slot<Maker>) -> Made {
    let maker = slot.content()?;
    let made = maker.made(|py, make| make.call0(py))?;
    Some((maker, made))
}

impl acks::Factory for Slot<Maker> {
    fn acknowledge(&self) -> Box<dyn acks::Acknowledge> {
        Box::new(Policy(made_alone(self)))
    }
}

/// A policy at work.
struct Policy(Made);

impl Policy {
    /// Without an answer there is an ACK for each segment: the run comes to its end.
    fn decide(
        &self,
        now: Instant,
        call: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<Py<PyAny>>,
    ) -> AckDecision {
        let decision = self.0.as_ref().and_then(|(maker, policy)| {
            maker.ask(|py| {
                let after: Option<f64> = call(py, policy)?.extract(py)?;
                Ok(match after {
                    None => AckDecision::Wait,
                    Some(0.0) => AckDecision::Now,
                    Some(after) => AckDecision::At(now + duration(after)?),
                })
            })
        });
        decision.unwrap_or(AckDecision::Now)
    }
}

impl acks::Acknowledge for Policy {
    fn on_data(&mut self, arrival: &acks::Arrival) -> AckDecision {
        self.decide(arrival.now, |py, policy| {
            let told = Arrival {
                now: seconds(arrival.now),
                new_bytes: arrival.new.0,
                in_order: arrival.in_order,
                waiting_bytes: arrival.waiting.0,
                rtt_min: arrival.rtt_min.map(Duration::as_secs_f64),
                smoothed_rtt: arrival.smoothed_rtt.map(Duration::as_secs_f64),
            };
            policy.call_method1(py, "on_data", (told,))
        })
    }

    fn on_timer(&mut self, now: Instant) -> AckDecision {
        self.decide(now, |py, policy| policy.call_method1(py, "on_timer", (seconds(now),)))
    }

    fn on_ack_sent(&mut self) {
        if let Some((maker, policy)) = &self.0 {
            let _ = maker.ask(|py| policy.call_method0(py, "on_ack_sent"));
        }
    }
}

impl control::Factory for Slot<Maker> {
    fn control(&self, mss: Bytes, initial_window: Bytes) -> (Box<dyn control::Control>, control::Steering) {
        let made = self.content().and_then(|maker| {
            let control = maker.made(|py, make| make.call1(py, (mss.0, initial_window.0)))?;
            Some((maker, control))
        });
        let steering = control::Steering { window: initial_window, pacing: None };
        (Box::new(Controller { made, steering }), steering)
    }
}

/// A controller at work.
struct Controller {
    made: Made,
    /// Its last answer, which holds where it gives none.
    steering: control::Steering,
}

/// A window in bytes, or with a rate in bits per second.
#[derive(FromPyObject)]
enum WindowAndRate {
    Window(u64),
    Both(u64, Option<u64>),
}

impl Controller {
    fn steer(
        &mut self,
        call: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<Py<PyAny>>,
    ) -> control::Steering {
        let steering = self.made.as_ref().and_then(|(maker, control)| {
            maker.ask(|py| call(py, control)?.extract::<Option<WindowAndRate>>(py))
        });
        if let Some(steering) = steering.flatten() {
            let (window, pacing) = match steering {
                WindowAndRate::Window(window) => (window, None),
                WindowAndRate::Both(window, pacing) => (window, pacing),
            };
            self.steering =
                control::Steering { window: Bytes(window), pacing: pacing.map(BitRate::from_bps) };
        }
        self.steering
    }
}

impl control::Control for Controller {
    fn on_ack(&mut self, ack: &control::Acknowledged) -> control::Steering {
        self.steer(|py, control| {
            let told = Acknowledged {
                now: seconds(ack.now),
                delivered_bytes: ack.delivered.0,
                delivered_total_bytes: ack.delivered_total.0,
                lost_bytes: ack.lost.0,
                prior_in_flight_bytes: ack.prior_in_flight.0,
                in_flight_bytes: ack.in_flight.0,
                rtt: ack.rtt.map(Duration::as_secs_f64),
                smoothed_rtt: ack.smoothed_rtt.map(Duration::as_secs_f64),
                delivery_rate_bps: ack.delivery_rate.map(BitRate::as_bps),
                receiver_rate_bps: ack.receiver_rate.map(BitRate::as_bps),
                application_limited: ack.application_limited,
                in_recovery: ack.in_recovery,
            };
            control.call_method1(py, "on_ack", (told,))
        })
    }

    fn on_loss(&mut self, in_flight: Bytes) -> control::Steering {
        self.steer(|py, control| control.call_method1(py, "on_loss", (in_flight.0,)))
    }

    fn on_timeout(&mut self, now: Instant, in_flight: Bytes) -> control::Steering {
        self.steer(|py, control| control.call_method1(py, "on_timeout", (seconds(now), in_flight.0)))
    }
}

/// A client that an access point has data for. Times are in seconds.
#[pyclass(module = "tacit._native", frozen, get_all)]
pub struct ReadyUser {
    /// Its number, from 1.
    client: u16,
    /// Packets that wait for it, those to be sent again included.
    packets: u32,
    /// Bytes of these packets.
    queued_bytes: u64,
    /// How long the oldest has waited.
    oldest: f64,
    /// The PHY's rate to it over the whole channel.
    rate_bps: u64,
}

/// A client as its access point knows it. Times are in seconds.
#[pyclass(module = "tacit._native", frozen, get_all)]
pub struct UplinkClient {
    /// Its number, from 1.
    client: u16,
    /// Bytes that it last said it has.
    reported_bytes: u64,
    /// MPDUs of data that it was sent since.
    sent_mpdus: u32,
    /// Time since it said so.
    silent: f64,
    /// MPDUs that it sent in the busier of this second and the one before.
    mpdus_per_s: u32,
    /// The PHY's rate from it over the whole channel.
    rate_bps: u64,
}

impl mu::MuSchedulerFactory for Slot<Maker> {
    fn scheduler(&self) -> Box<dyn mu::MuScheduler> {
        Box::new(Scheduler(made_alone(self)))
    }
}

/// A scheduler at work.
struct Scheduler(Made);

impl Scheduler {
    /// Without an answer no client is chosen: the run comes to its end.
    fn choose(
        &self,
        chosen: &mut Vec<usize>,
        call: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<Py<PyAny>>,
    ) {
        let positions = self.0.as_ref().and_then(|(maker, scheduler)| {
            maker.ask(|py| call(py, scheduler)?.extract::<Option<Vec<usize>>>(py))
        });
        chosen.extend(positions.flatten().unwrap_or_default());
    }
}

impl mu::MuScheduler for Scheduler {
    fn downlink(&mut self, now: Instant, ready: &[mu::ReadyUser], most: usize, users: &mut Vec<usize>) {
        self.choose(users, |py, scheduler| {
            let told = ready.iter().map(|user| ReadyUser {
                client: user.client.0,
                packets: user.packets,
                queued_bytes: user.bytes.0,
                oldest: user.oldest.as_secs_f64(),
                rate_bps: user.rate.as_bps(),
            });
            scheduler.call_method1(py, "downlink", (seconds(now), told.collect::<Vec<_>>(), most))
        });
    }

    fn uplink(&mut self, now: Instant, clients: &[mu::UplinkClient], most: usize, asked: &mut Vec<usize>) {
        self.choose(asked, |py, scheduler| {
            let told = clients.iter().map(|client| UplinkClient {
                client: client.client.0,
                reported_bytes: client.reported.0,
                sent_mpdus: client.sent_mpdus,
                silent: client.silent.as_secs_f64(),
                mpdus_per_s: client.mpdus_per_s,
                rate_bps: client.rate.as_bps(),
            });
            scheduler.call_method1(py, "uplink", (seconds(now), told.collect::<Vec<_>>(), most))
        });
    }
}
