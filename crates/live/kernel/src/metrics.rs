//! Metrics of flows for Prometheus (text format, version 0.0.4).

use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use tacit_hop::LiveError;

use crate::flows::Flow;
use crate::loaded::read_flows;

/// Maximum time for a reader to send its request, and maximum length of the request.
const PATIENCE: Duration = Duration::from_secs(2);
const REQUEST_BYTES_MAX: u64 = 8_192;

/// Responds to every `GET` at `address` with the current flows. First calls `ready` with the address. Runs until the
/// process ends.
///
/// # Errors
/// If listening there fails, or flows cannot be read.
pub fn serve(address: &str, ready: impl FnOnce(&str)) -> Result<(), LiveError> {
    read_flows()?;
    let bad = |error: io::Error| LiveError::Argument {
        argument: "--metrics",
        what: format!("{address}: {error}"),
        allowed: "an address and port of this machine, such as 127.0.0.1:9100".to_owned(),
    };
    let listener = TcpListener::bind(address).map_err(bad)?;
    ready(&listener.local_addr().map_err(bad)?.to_string());
    for reader in listener.incoming().flatten() {
        // A reader that disconnects has no other effect.
        let _ = answer(reader);
    }
    Ok(())
}

fn answer(mut reader: TcpStream) -> io::Result<()> {
    reader.set_read_timeout(Some(PATIENCE))?;
    reader.set_write_timeout(Some(PATIENCE))?;
    let mut request = BufReader::new((&reader).take(REQUEST_BYTES_MAX));
    let mut first = String::new();
    request.read_line(&mut first)?;
    let mut line = first.clone();
    while !line.trim_end().is_empty() {
        line.clear();
        request.read_line(&mut line)?;
    }
    let (status, body) = match first.split(' ').next() {
        Some("GET") => match read_flows() {
            Ok(flows) => ("200 OK", to_metrics(&flows)),
            Err(error) => ("500 Internal Server Error", format!("{error}\n")),
        },
        _ => ("405 Method Not Allowed", String::new()),
    };
    let len = body.len();
    write!(
        reader,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {len}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}

/// A metric: its name, its help text, and its value.
type Metric = (&'static str, &'static str, fn(&Flow) -> String);

const METRICS: [Metric; 6] = [
    ("sending_rate_bits_per_second", "Rate at which the flow sends.", |flow| {
        flow.sending_rate_bps.to_string()
    }),
    ("receive_rate_bits_per_second", "Rate at which the receiver gets it.", |flow| {
        flow.receive_rate_bps.to_string()
    }),
    ("buffer_delay_seconds", "Queueing on the way to the receiver.", |flow| {
        format!("{}.{:06}", flow.buffer_delay_us / 1_000_000, flow.buffer_delay_us % 1_000_000)
    }),
    ("window_bytes", "Maximum of unacknowledged bytes.", |flow| flow.window_bytes.to_string()),
    ("clock_trusted", "1 where the receiver's timestamps serve.", |flow| {
        u8::from(flow.clock == "trusted").to_string()
    }),
    ("state", "1, with the state as a label.", |_| "1".to_owned()),
];

fn to_metrics(flows: &[Flow]) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "# HELP tacit_rre_flows Flows that use TCP-RRE.");
    let _ = writeln!(text, "# TYPE tacit_rre_flows gauge\ntacit_rre_flows {}", flows.len());
    for (name, help, value) in METRICS {
        let _ = writeln!(text, "# HELP tacit_rre_{name} {help}\n# TYPE tacit_rre_{name} gauge");
        for flow in flows {
            let _ = write!(
                text,
                "tacit_rre_{name}{{control=\"{}\",namespace=\"{}\",local=\"{}\",peer=\"{}\"",
                flow.control, flow.namespace, flow.local, flow.peer
            );
            if name == "state" {
                let _ = write!(text, ",state=\"{}\"", flow.state);
            }
            let _ = writeln!(text, "}} {}", value(flow));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::tests::record;

    #[test]
    fn every_metric_has_a_line_per_flow() {
        let flow = Flow::read(&record(2, &[192, 0, 2, 1], &[198, 51, 100, 7])).unwrap();
        let text = to_metrics(&[flow]);
        let labels = "control=\"tacit_rre2\",namespace=\"4026531840\",local=\"192.0.2.1:443\",\
                      peer=\"198.51.100.7:50000\"";
        assert!(text.contains("\ntacit_rre_flows 1\n"), "{text}");
        assert!(text.contains(&format!("\ntacit_rre_buffer_delay_seconds{{{labels}}} 0.012345\n")), "{text}");
        assert!(text.contains(&format!("\ntacit_rre_sending_rate_bits_per_second{{{labels}}} 10000000\n")));
        assert!(text.ends_with(&format!("\ntacit_rre_state{{{labels},state=\"start\"}} 1\n")), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("# TYPE")).count(), METRICS.len() + 1);
    }
}
