//! Metrics for Prometheus, in its text format (version 0.0.4), and the HTTP server for them.
//!
//! By Prometheus' conventions, names end in their unit and counters in `_total`. Labels have only the few values that
//! are listed here, never a name, key or address of a peer.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tacit_tack::metrics::{Histogram, Metrics};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::copy::wire::Direction;
use crate::copy::{CopyError, CopyReport};
use crate::proxy::{ProxyError, ReplyCode};
use crate::running::Running;

/// Most concurrent readers. Ours: one scraper and some manual requests.
const READERS_MAX: usize = 8;
/// Time limit for a request and its response. Ours.
const PATIENCE: Duration = Duration::from_secs(10);

/// The text of a metrics page.
#[derive(Debug, Default)]
pub struct Page(String);

impl Page {
    /// Returns the text.
    pub fn into_text(self) -> String {
        self.0
    }

    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "# HELP tacit_{name} {help}\n# TYPE tacit_{name} {kind}\n");
    }

    fn line(&mut self, name: &str, labels: &str, value: u64) {
        let _ = writeln!(self.0, "tacit_{name}{labels} {value}");
    }

    /// A counter without labels.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "counter", help);
        self.line(name, "", value);
    }

    /// A counter with a `label` that has one of the given values.
    pub fn counters(&mut self, name: &str, help: &str, label: &str, values: &[(&str, u64)]) {
        self.family(name, "counter", help);
        for (word, value) in values {
            self.line(name, &format!("{{{label}=\"{word}\"}}"), *value);
        }
    }

    /// A gauge.
    pub fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "gauge", help);
        self.line(name, "", value);
    }

    /// A histogram whose values are divided by `per_unit`.
    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram, per_unit: f64) {
        self.family(name, "histogram", help);
        let mut below = 0;
        for (bound, count) in histogram.bounds.iter().zip(&histogram.counts) {
            below += count;
            self.line(
                name_of_bucket(name).as_str(),
                &format!("{{le=\"{}\"}}", *bound as f64 / per_unit),
                below,
            );
        }
        let all = histogram.counts.iter().sum();
        self.line(name_of_bucket(name).as_str(), "{le=\"+Inf\"}", all);
        let _ = writeln!(self.0, "tacit_{name}_sum {}", histogram.sum as f64 / per_unit);
        let _ = writeln!(self.0, "tacit_{name}_count {all}");
    }

    /// Counters and gauges of an endpoint.
    pub fn endpoint(&mut self, metrics: &Metrics) {
        let (counters, totals) = (&metrics.counters, &metrics.totals);
        self.gauge("tack_connections", "Open connections.", metrics.connections_open);
        self.gauge("tack_handshakes", "Half-open handshakes.", metrics.handshakes_open);
        self.gauge("tack_streams", "Open streams.", metrics.streams_open);
        self.gauge("tack_in_flight_bytes", "Data in flight.", metrics.bytes_in_flight);
        self.gauge("tack_unread_bytes", "Received data that waits for readers.", metrics.bytes_unread);
        let most = metrics.bytes_unread_max;
        self.gauge("tack_unread_bytes_max", "Bound of the data that waits for readers.", most);
        self.gauge("tack_held_bytes", "Memory of stream buffers.", metrics.bytes_held);
        self.gauge("tack_held_bytes_max", "Bound of the memory of stream buffers.", metrics.bytes_held_max);
        let given_up = counters.streams_given_up;
        self.counter("tack_streams_given_up_total", "Streams reset for lack of memory.", given_up);
        let connections = counters.connections_made;
        self.counter("tack_connections_total", "Connections established.", connections);
        let ended = [
            ("silent", counters.ended_silent),
            ("peer", counters.ended_by_peer),
            ("here", counters.ended_here),
            ("broken", counters.ended_broken),
        ];
        self.counters("tack_connections_ended_total", "Connections ended, by reason.", "reason", &ended);
        self.counter("tack_handshakes_total", "Handshakes started by clients.", counters.handshakes_begun);
        let unfinished = counters.handshakes_unfinished;
        self.counter("tack_handshakes_failed_total", "Handshakes that clients did not finish.", unfinished);
        let refused = [
            ("key", counters.clients_refused),
            ("full", counters.handshakes_refused),
            ("address", counters.retries_sent),
        ];
        self.counters(
            "tack_refusals_total",
            "Clients refused, or asked to validate their address.",
            "reason",
            &refused,
        );
        let resets = counters.resets_sent;
        self.counter("tack_resets_sent_total", "Resets sent for unknown connections.", resets);
        self.traffic(metrics);
        let opened = totals.streams_opened;
        self.counter("tack_streams_total", "Streams opened, by either end.", opened);
        self.counter("tack_path_changes_total", "Address changes of clients.", counters.paths_changed);
        self.counter("tack_key_updates_total", "Key updates.", counters.keys_updated);
        let rtt = "Smoothed round-trip time, one value per second with acknowledgments and connection.";
        self.histogram("tack_rtt_seconds", rtt, &metrics.rtt_us, 1e6);
        let rate = "Rate of acknowledged data, one value per second with acknowledgments and connection.";
        self.histogram("tack_rate_bits_per_second", rate, &metrics.rate_bps, 1.0);
        self.family("udp_buffer_bytes", "gauge", "Socket buffers of the system.");
        for (direction, bytes) in ["sent", "received"].into_iter().zip(metrics.socket_buffers) {
            self.line("udp_buffer_bytes", &format!("{{direction=\"{direction}\"}}"), bytes as u64);
        }
        let dropped = metrics.qlog_records_dropped;
        self.counter("qlog_records_dropped_total", "Dropped qlog records.", dropped);
    }

    fn traffic(&mut self, metrics: &Metrics) {
        let (counters, totals) = (&metrics.counters, &metrics.totals);
        let both = |sent, received| [("sent", sent), ("received", received)];
        let way = "direction";
        let datagrams = both(counters.datagrams_sent, counters.datagrams_received);
        self.counters("udp_datagrams_total", "UDP datagrams.", way, &datagrams);
        let bytes = both(counters.bytes_sent, counters.bytes_received);
        self.counters("udp_bytes_total", "UDP payload.", way, &bytes);
        let dropped = [
            ("strange", counters.datagrams_strange),
            ("forged", counters.datagrams_forged),
            ("repeated", counters.datagrams_repeated),
            ("misplaced", counters.datagrams_misplaced),
        ];
        self.counters("udp_datagrams_dropped_total", "Discarded datagrams.", "reason", &dropped);
        let packets = both(totals.packets_sent, totals.packets_received);
        self.counters("tack_packets_total", "Packets of connections.", way, &packets);
        let data = both(totals.data_packets_sent, totals.data_packets_received);
        self.counters("tack_data_packets_total", "Packets with data.", way, &data);
        let acks = [("tack", totals.tacks_sent), ("iack", totals.iacks_sent)];
        self.counters("tack_acks_sent_total", "Acknowledgments sent.", "kind", &acks);
        self.counter("tack_acks_received_total", "Acknowledgments received.", totals.acks_received);
        self.counter("tack_packets_lost_total", "Packets declared lost.", totals.packets_lost);
        let again = totals.packets_retransmitted;
        self.counter("tack_packets_retransmitted_total", "Packets that retransmit data.", again);
        self.counter("tack_loss_episodes_total", "Round trips with losses.", totals.loss_episodes);
        self.counter("tack_timeouts_total", "Probe timeouts.", totals.timeouts);
        let delivered = both(totals.bytes_sent, totals.bytes_delivered);
        self.counters(
            "tack_data_bytes_total",
            "Data sent, retransmissions included; data delivered.",
            way,
            &delivered,
        );
    }
}

fn name_of_bucket(name: &str) -> String {
    format!("{name}_bucket")
}

/// Counts of copies that a server's metrics include.
#[derive(Debug, Default)]
pub struct CopyCounts {
    /// Copies in progress.
    pub running: Running,
    /// Ended copies by direction and result.
    ended: [[AtomicU64; RESULTS.len()]; 2],
    bytes: [AtomicU64; 2],
}

const RESULTS: [&str; 4] = ["done", "partial", "refused", "broken"];
const DIRECTIONS: [&str; 2] = ["push", "pull"];

impl CopyCounts {
    /// Counts the end of a copy. `direction` is `None` if the client made no request.
    pub fn on_end(&self, direction: Option<Direction>, result: &Result<CopyReport, CopyError>) {
        let place = usize::from(direction == Some(Direction::Pull));
        let what = match result {
            Ok(outcome) if outcome.summary.failed == 0 => 0,
            Ok(_) => 1,
            Err(CopyError::Refused(_)) => 2,
            Err(_) => 3,
        };
        self.ended[place][what].fetch_add(1, Relaxed);
        if let Ok(outcome) = result {
            self.bytes[place].fetch_add(outcome.summary.received_bytes, Relaxed);
        }
    }

    /// Writes these counts.
    pub fn write(&self, page: &mut Page) {
        page.gauge("copies_running", "Copies that run.", self.running.count());
        page.family("copies_total", "counter", "Copies ended, by the client's direction.");
        for (direction, ended) in DIRECTIONS.iter().zip(&self.ended) {
            for (result, count) in RESULTS.iter().zip(ended) {
                let labels = format!("{{direction=\"{direction}\",result=\"{result}\"}}");
                page.line("copies_total", &labels, count.load(Relaxed));
            }
        }
        let [push, pull] = &self.bytes;
        let bytes = [("push", push.load(Relaxed)), ("pull", pull.load(Relaxed))];
        page.counters(
            "copied_bytes_total",
            "Contents of copies that reached their summary.",
            "direction",
            &bytes,
        );
    }
}

/// Counts of the connections of a proxy.
#[derive(Debug, Default)]
pub struct ProxyCounts {
    /// Open connections.
    pub running: Running,
    /// Bytes forwarded in both directions.
    pub bytes: AtomicU64,
    answers: [AtomicU64; ANSWERS.len()],
    broken: AtomicU64,
    /// How often the connection to the proxy's server was opened.
    pub links: AtomicU64,
}

const ANSWERS: [(&str, ReplyCode); 7] = [
    ("connected", ReplyCode::Connected),
    ("failed", ReplyCode::Failed),
    ("not_allowed", ReplyCode::NotAllowed),
    ("unreachable", ReplyCode::Unreachable),
    ("refused", ReplyCode::Refused),
    ("busy", ReplyCode::Busy),
    ("no_descriptors", ReplyCode::NoDescriptors),
];

impl ProxyCounts {
    /// Counts the answer to a request for a target.
    pub fn on_answer(&self, answer: ReplyCode) {
        if let Some(place) = ANSWERS.iter().position(|(_, one)| *one == answer) {
            self.answers[place].fetch_add(1, Relaxed);
        }
    }

    /// Counts the end of a connection.
    pub fn on_end(&self, error: Option<&ProxyError>) {
        let is_broken = matches!(error, Some(ProxyError::Io(_) | ProxyError::Idle));
        self.broken.fetch_add(u64::from(is_broken), Relaxed);
    }

    /// Writes these counts.
    pub fn write(&self, page: &mut Page) {
        page.gauge("proxy_connections", "Carried TCP connections.", self.running.count());
        let answers: Vec<_> = ANSWERS
            .iter()
            .zip(&self.answers)
            .map(|((word, _), count)| (*word, count.load(Relaxed)))
            .collect();
        page.counters("proxy_requests_total", "Requested targets.", "answer", &answers);
        page.counter("proxy_broken_total", "Connections that broke.", self.broken.load(Relaxed));
        page.counter("proxy_bytes_total", "Carried bytes, both directions.", self.bytes.load(Relaxed));
        page.counter("proxy_links_total", "Connections to the server.", self.links.load(Relaxed));
    }
}

/// Answers GET requests for `/metrics` at `listener` with the current `page`. Runs until it is dropped.
pub async fn serve(listener: TcpListener, page: Arc<dyn Fn() -> String + Send + Sync>) {
    let readers = Arc::new(Semaphore::new(READERS_MAX));
    loop {
        let Ok(permit) = readers.clone().acquire_owned().await else { return };
        let Ok((reader, _)) = listener.accept().await else {
            // Usually no file descriptor is free.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let page = page.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let answer = answer(&request, &*page);
                async { Ok::<_, Infallible>(answer) }
            });
            let mut builder = Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE).keep_alive(false);
            // A reader that disconnects has no other effect.
            let served = builder.serve_connection(TokioIo::new(reader), service);
            let _ = tokio::time::timeout(PATIENCE, served).await;
            drop(permit);
        });
    }
}

fn answer(request: &Request<Incoming>, page: &dyn Fn() -> String) -> Response<Full<Bytes>> {
    let (status, body) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => (StatusCode::OK, page()),
        (&Method::GET | &Method::HEAD, _) => (StatusCode::NOT_FOUND, "see /metrics\n".to_owned()),
        _ => (StatusCode::METHOD_NOT_ALLOWED, String::new()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("text/plain; version=0.0.4"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
    }
    response
}
