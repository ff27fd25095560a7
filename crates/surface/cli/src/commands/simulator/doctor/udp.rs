//! UDP in `tacit doctor`.

use tacit_hop::doctor::Check;
use tacit_tack::udp::{self, Capabilities};

/// Checks of the UDP features that TACK uses.
pub(super) fn for_tack() -> Vec<Check> {
    match udp::probe() {
        Ok(machine) => checks(&machine).into(),
        Err(error) => vec![Check {
            name: "udp",
            works: false,
            found: format!("loopback carries no datagrams: {error}; ip link set lo up"),
            needed_for: "TACK",
            required: false,
        }],
    }
}

/// One check per feature, with a remedy if it is missing.
fn checks(machine: &Capabilities) -> [Check; 4] {
    let check =
        |name, works, found: String, needed_for| Check { name, works, found, needed_for, required: false };
    let asked = Capabilities::REQUESTED_BUFFER;
    let short = [("wmem_max", machine.send_buffer), ("rmem_max", machine.receive_buffer)]
        .map(|(key, bytes)| (bytes < asked).then(|| format!(" net.core.{key}={asked}")));
    let remedy = short.iter().flatten().map(String::as_str).collect::<String>();
    let is_large = remedy.is_empty();
    let remedy = if is_large { String::new() } else { format!("; sysctl -w{remedy}") };
    let buffers = format!(
        "send {:.1} MB, receive {:.1} MB, wanted {:.1} MB{remedy}",
        machine.send_buffer as f64 / 1e6,
        machine.receive_buffer as f64 / 1e6,
        asked as f64 / 1e6,
    );
    let batches = |name, segments: usize, what, remedy| {
        let works = segments > 1;
        let found = if works { format!("up to {segments} {what}") } else { remedy };
        check(name, works, found, "TACK with less CPU time")
    };
    let has = |family: &str, marked: bool| format!("{family} {}", if marked { "yes" } else { "no" });
    let ecn = machine.ecn && machine.ecn_v6 != Some(false);
    let v6 = machine.ecn_v6.map_or("no IPv6 here".to_owned(), |marked| has("IPv6", marked));
    let remedy = if ecn { "" } else { "; a packet filter or a container clears the marks" };
    [
        check("udp buffers", is_large, buffers, "TACK above 1 Gb/s or 20 ms"),
        batches(
            "udp gso",
            machine.send_segments,
            "datagrams per send",
            "one datagram per send; UDP_SEGMENT needs Linux 4.18, and some containers lack it".to_owned(),
        ),
        batches(
            "udp gro",
            machine.receive_segments,
            "datagrams per receive",
            "one datagram per receive; UDP_GRO needs Linux 5.0, and some containers lack it".to_owned(),
        ),
        check(
            "udp ecn",
            ecn,
            format!("{}, {v6}{remedy}", has("IPv4", machine.ecn)),
            "TACK on links with ECN",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_features_of_the_machine_come_with_a_remedy() {
        let mut machine = udp::probe().unwrap();
        (machine.send_buffer, machine.receive_buffer) = (8_388_608, 8_388_608);
        (machine.send_segments, machine.receive_segments) = (64, 64);
        (machine.ecn, machine.ecn_v6) = (true, None);
        let found = |machine: &Capabilities| checks(machine).map(|check| (check.works, check.found));
        assert_eq!(
            found(&machine).map(|(works, found)| format!("{works}: {found}")),
            [
                "true: send 8.4 MB, receive 8.4 MB, wanted 4.2 MB",
                "true: up to 64 datagrams per send",
                "true: up to 64 datagrams per receive",
                "true: IPv4 yes, no IPv6 here",
            ]
        );
        // The default of Linux.
        machine.receive_buffer = 425_984;
        assert_eq!(
            found(&machine)[0],
            (
                false,
                "send 8.4 MB, receive 0.4 MB, wanted 4.2 MB; sysctl -w net.core.rmem_max=4194304".to_owned()
            )
        );
        machine.send_buffer = 425_984;
        assert!(
            found(&machine)[0].1.ends_with("; sysctl -w net.core.wmem_max=4194304 net.core.rmem_max=4194304")
        );
        (machine.send_segments, machine.receive_segments) = (1, 1);
        machine.ecn_v6 = Some(false);
        let lacking = found(&machine);
        assert!(lacking.iter().all(|(works, _)| !works), "{lacking:?}");
        assert!(lacking[1].1.contains("UDP_SEGMENT") && lacking[2].1.contains("UDP_GRO"));
        assert!(lacking[3].1.starts_with("IPv4 yes, IPv6 no; "));
    }
}
