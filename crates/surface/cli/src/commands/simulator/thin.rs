//! `tacit thin`.

use std::fmt::Write as _;
use std::process::ExitCode;

use tacit_hop::LiveError;
use tacit_hop::signals::Signals;
use tacit_hop::thin::{Counters, Device, Running, rehearse, run as thin, running};
use tacit_input::{argument, bit_rate};
use tacit_kernel::thin::Thinner;

use crate::args::{ThinArgs, ThinCommand};
use crate::output::{Failure, note, print, print_json};

/// ACKs of more than the first 100 segments of some flows.
const ACKS_ENOUGH: u64 = 1_000;

pub fn run(args: ThinArgs) -> Result<ExitCode, Failure> {
    match (args.command, args.device) {
        (Some(ThinCommand::Status { json: true }), _) => print_json(&running()?)?,
        (Some(ThinCommand::Status { json: false }), _) => print(&to_text(&running()?))?,
        (None, Some(device)) => {
            let rate = args.uplink.map(|text| argument("--uplink", &text, bit_rate)).transpose()?;
            let (found, stop) = (Device::find(&device)?, Signals::taken_over()?);
            if let Some(rate) = rate.filter(|_| args.dry_run) {
                note(&format!("tacit: {device} is watched for a minute; nothing is changed"));
                let counters = rehearse(&found, rate, &stop)?;
                return print_end(&Running { device, counters }, args.json).map(|()| ExitCode::SUCCESS);
            }
            note_where_it_helps(&found);
            let in_kernel = (!args.no_ebpf).then(|| Thinner::start(&found, rate));
            let counters = match in_kernel.transpose() {
                Ok(Some(thinner)) => {
                    note_started(&found, "IPv4 and IPv6", "in the kernel");
                    thinner.run(&stop)?
                }
                Err(error @ LiveError::Argument { .. }) => return Err(error.into()),
                other => {
                    let by = "by a TUN device and its routes";
                    if let Err(error) = other {
                        note(&format!("tacit: not in the kernel, but {by}: {error}"));
                    }
                    thin(&found, rate, &stop, |device| note_started(device, device.versions(), by))?
                }
            };
            if rate.is_none() {
                warn_if_idle(&counters);
            }
            print_end(&Running { device, counters }, args.json)?;
        }
        // Clap asks for one of them.
        (None, None) => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn note_where_it_helps(device: &Device) {
    if device.is_wifi {
        note(&format!("tacit: {} is Wi-Fi, where thinning is not needed", device.name));
    } else {
        note("tacit: for slow uplinks; on Wi-Fi thinning is not needed");
    }
}

/// Says why no ACK was dropped where nothing has filled the queue of this machine.
fn warn_if_idle(counters: &Counters) {
    if counters.dropped_acks == 0 && counters.acks > ACKS_ENOUGH {
        note(
            "tacit: no ACK waited: the queue of this machine was never busy with ACKs. If the uplink's queue is in a \
             modem, give its rate: --uplink RATE",
        );
    }
}

fn note_started(device: &Device, versions: &str, form: &str) {
    note(&format!(
        "tacit: ACKs of TCP over {versions} that leave by {} are thinned {form} until this is stopped; QUIC's and \
         VPNs' are not",
        device.name
    ));
}

/// Prints the counters of a device at the end, as JSON if wanted.
fn print_end(ended: &Running, json: bool) -> Result<(), Failure> {
    if json { print_json(ended) } else { print(&line(&ended.device, &ended.counters)) }
}

fn to_text(all: &[Running]) -> String {
    if all.is_empty() {
        return "No device is thinned.\n".to_owned();
    }
    all.iter().fold(String::new(), |text, Running { device, counters }| text + &line(device, counters))
}

fn line(device: &str, counters: &Counters) -> String {
    let Counters { packets, acks, dropped_acks, refused_packets, sent_bytes } = counters;
    let mut line =
        format!("{device}: {dropped_acks} of {acks} ACKs dropped; {packets} packets, {sent_bytes} B sent");
    if *refused_packets > 0 {
        let _ = write!(line, ", {refused_packets} packets refused");
    }
    line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_a_line_per_device() {
        assert_eq!(to_text(&[]), "No device is thinned.\n");
        let counters = Counters { packets: 9, acks: 8, dropped_acks: 6, refused_packets: 0, sent_bytes: 900 };
        let all = [Running { device: "wwan0".to_owned(), counters }];
        assert_eq!(to_text(&all), "wwan0: 6 of 8 ACKs dropped; 9 packets, 900 B sent\n");
        let refused = Counters { refused_packets: 2, ..counters };
        assert!(line("eth0", &refused).ends_with(", 2 packets refused\n"));
    }
}
