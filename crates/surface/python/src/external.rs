//! ACK policies, controllers and schedulers written in Python, for use in the simulator.
//!
//! Each call acquires the interpreter. A Python exception ends the run: Python is not called again, and the call that
//! started the run raises the exception.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tacit_congestion::external as control;
use tacit_link::wifi as mu;
use tacit_packet::factory::{FactoryRef, Named};
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};
use tacit_tcp::AckDecision;
use tacit_tcp::ack_policy::external as acks;

use crate::slot::{Free, Slot, Taken};

/// Creates policies or controllers: a class, or any callable.
pub struct Maker {
    make: Py<PyAny>,
    name: String,
    failed: Mutex<Option<PyErr>>,
}

static FREE: Free<Maker> = Mutex::new(Vec::new());

/// A maker that occupies a slot during a run.
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

    /// The exception raised by Python, if any.
    pub fn failure(&self) -> Option<PyErr> {
        self.1.failed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Maker {
    /// The result of `call`, unless Python raises an exception now or has raised one before.
    fn call<T>(&self, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
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

    fn create(
        &self,
        arguments: impl for<'py> FnOnce(Python<'py>, &Py<PyAny>) -> PyResult<Py<PyAny>>,
    ) -> Option<Py<PyAny>> {
        self.call(|py| arguments(py, &self.make))
    }
}

fn seconds(time: Instant) -> f64 {
    time.as_nanos() as f64 / 1e9
}

/// Converts a time in seconds from Python.
fn duration(seconds: f64) -> PyResult<Duration> {
    /// One day, which is longer than any run.
    const MOST: f64 = 86_400.0;
    if !(0.0..=MOST).contains(&seconds) {
        return Err(PyValueError::new_err(format!("{seconds} s; allowed: 0 to {MOST} s")));
    }
    Ok(Duration::from_nanos((seconds * 1e9).round() as u64))
}

/// A segment with new data, as passed to a receiver's policy. Times are in seconds.
#[pyclass(module = "tacit._native", frozen, get_all)]
pub struct Arrival {
    /// Time of arrival since the start of the run.
    now: f64,
    /// Number of new bytes in it.
    new_bytes: u64,
    /// True if it is neither above a gap nor fills one.
    in_order: bool,
    /// Number of bytes received above gaps, including this segment.
    waiting_bytes: u64,
    /// The minimum round-trip time observed by the receiver.
    rtt_min: Option<f64>,
    /// The smoothed round-trip time at the receiver.
    smoothed_rtt: Option<f64>,
}

/// Content of one ACK, as passed to a sender's controller. Times are in seconds.
#[pyclass(module = "tacit._native", frozen, get_all)]
pub struct Acknowledged {
    /// Time of arrival since the start of the run.
    now: f64,
    /// Number of bytes newly acknowledged, cumulatively or selectively.
    delivered_bytes: u64,
    /// Number of bytes delivered since the start of the connection.
    delivered_total_bytes: u64,
    /// Number of bytes newly considered lost.
    lost_bytes: u64,
    /// Estimated bytes in flight before the ACK.
    prior_in_flight_bytes: u64,
    /// Estimated bytes in flight after the ACK.
    in_flight_bytes: u64,
    /// Round-trip time of the newest acknowledged segment, if it is unambiguous.
    rtt: Option<f64>,
    /// Smoothed round-trip time.
    smoothed_rtt: Option<f64>,
    /// Delivery rate measured by the sender, if available.
    delivery_rate_bps: Option<u64>,
    /// Arrival rate reported by the receiver (TACK).
    receiver_rate_bps: Option<u64>,
    /// The application limited the rate, so rates reveal little about the path.
    application_limited: bool,
    /// The sender is repairing losses.
    in_recovery: bool,
}

impl Named for Slot<Maker> {
    fn name(&self) -> &'static str {
        "brought by Python"
    }
}

/// An object and its maker; `None` if it could not be created.
type Instance = Option<(Arc<Maker>, Py<PyAny>)>;

/// Calls the maker in `slot` without arguments. Returns the object.
fn create_without_arguments(slot: &Slot<Maker>) -> Instance {
    let maker = slot.content()?;
    let object = maker.create(|py, make| make.call0(py))?;
    Some((maker, object))
}

impl acks::Factory for Slot<Maker> {
    fn acknowledge(&self) -> Box<dyn acks::Acknowledge> {
        Box::new(Policy(create_without_arguments(self)))
    }
}

/// A policy in use.
struct Policy(Instance);

impl Policy {
    /// After an exception, each segment is acknowledged, so that the run ends normally.
    fn decide(
        &self,
        now: Instant,
        call: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<Py<PyAny>>,
    ) -> AckDecision {
        let decision = self.0.as_ref().and_then(|(maker, policy)| {
            maker.call(|py| {
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
            let arrival = Arrival {
                now: seconds(arrival.now),
                new_bytes: arrival.new.0,
                in_order: arrival.in_order,
                waiting_bytes: arrival.waiting.0,
                rtt_min: arrival.rtt_min.map(Duration::as_secs_f64),
                smoothed_rtt: arrival.smoothed_rtt.map(Duration::as_secs_f64),
            };
            policy.call_method1(py, "on_data", (arrival,))
        })
    }

    fn on_timer(&mut self, now: Instant) -> AckDecision {
        self.decide(now, |py, policy| policy.call_method1(py, "on_timer", (seconds(now),)))
    }

    fn on_ack_sent(&mut self) {
        if let Some((maker, policy)) = &self.0 {
            let _ = maker.call(|py| policy.call_method0(py, "on_ack_sent"));
        }
    }
}

impl control::Factory for Slot<Maker> {
    fn control(&self, mss: Bytes, initial_window: Bytes) -> (Box<dyn control::Control>, control::Steering) {
        let instance = self.content().and_then(|maker| {
            let control = maker.create(|py, make| make.call1(py, (mss.0, initial_window.0)))?;
            Some((maker, control))
        });
        let steering = control::Steering { window: initial_window, pacing: None };
        (Box::new(Controller { instance, steering }), steering)
    }
}

/// A controller in use.
struct Controller {
    instance: Instance,
    /// Its last result, which stays in effect after an exception.
    steering: control::Steering,
}

/// A window in bytes, optionally with a rate in bits per second.
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
        let steering = self.instance.as_ref().and_then(|(maker, control)| {
            maker.call(|py| call(py, control)?.extract::<Option<WindowAndRate>>(py))
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
            let ack_fields = Acknowledged {
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
            control.call_method1(py, "on_ack", (ack_fields,))
        })
    }

    fn on_loss(&mut self, in_flight: Bytes) -> control::Steering {
        self.steer(|py, control| control.call_method1(py, "on_loss", (in_flight.0,)))
    }

    fn on_timeout(&mut self, now: Instant, in_flight: Bytes) -> control::Steering {
        self.steer(|py, control| control.call_method1(py, "on_timeout", (seconds(now), in_flight.0)))
    }
}

/// A client for which an access point has data. Times are in seconds.
#[pyclass(module = "tacit._native", frozen, get_all)]
pub struct ReadyUser {
    /// Its number, counted from 1.
    client: u16,
    /// Number of packets queued for it, including retransmissions.
    packets: u32,
    /// Total length of these packets in bytes.
    queued_bytes: u64,
    /// Waiting time of the oldest one.
    oldest: f64,
    /// The PHY rate to it over the whole channel.
    rate_bps: u64,
}

/// An access point's knowledge about a client. Times are in seconds.
#[pyclass(module = "tacit._native", frozen, get_all)]
pub struct UplinkClient {
    /// Its number, counted from 1.
    client: u16,
    /// Buffer status that it last reported, in bytes.
    reported_bytes: u64,
    /// Number of data MPDUs sent to it since this report.
    sent_mpdus: u32,
    /// Time since this report.
    silent: f64,
    /// The larger of the numbers of MPDUs that it sent in the current and in the previous second.
    mpdus_per_s: u32,
    /// The PHY rate from it over the whole channel.
    rate_bps: u64,
}

impl mu::MuSchedulerFactory for Slot<Maker> {
    fn scheduler(&self) -> Box<dyn mu::MuScheduler> {
        Box::new(Scheduler(create_without_arguments(self)))
    }
}

/// A scheduler in use.
struct Scheduler(Instance);

impl Scheduler {
    /// After an exception, no client is selected, so that the run ends normally.
    fn choose(
        &self,
        chosen: &mut Vec<usize>,
        call: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<Py<PyAny>>,
    ) {
        let positions = self.0.as_ref().and_then(|(maker, scheduler)| {
            maker.call(|py| call(py, scheduler)?.extract::<Option<Vec<usize>>>(py))
        });
        chosen.extend(positions.flatten().unwrap_or_default());
    }
}

impl mu::MuScheduler for Scheduler {
    fn downlink(&mut self, now: Instant, ready: &[mu::ReadyUser], most: usize, users: &mut Vec<usize>) {
        self.choose(users, |py, scheduler| {
            let ready_users = ready.iter().map(|user| ReadyUser {
                client: user.client.0,
                packets: user.packets,
                queued_bytes: user.bytes.0,
                oldest: user.oldest.as_secs_f64(),
                rate_bps: user.rate.as_bps(),
            });
            scheduler.call_method1(py, "downlink", (seconds(now), ready_users.collect::<Vec<_>>(), most))
        });
    }

    fn uplink(&mut self, now: Instant, clients: &[mu::UplinkClient], most: usize, asked: &mut Vec<usize>) {
        self.choose(asked, |py, scheduler| {
            let uplink_clients = clients.iter().map(|client| UplinkClient {
                client: client.client.0,
                reported_bytes: client.reported.0,
                sent_mpdus: client.sent_mpdus,
                silent: client.silent.as_secs_f64(),
                mpdus_per_s: client.mpdus_per_s,
                rate_bps: client.rate.as_bps(),
            });
            scheduler.call_method1(py, "uplink", (seconds(now), uplink_clients.collect::<Vec<_>>(), most))
        });
    }
}
