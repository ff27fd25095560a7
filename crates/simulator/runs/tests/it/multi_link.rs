//! TCP/HACK over several links, beside stock TCP.

use tacit_runs::single::{Options, prepare};

/// Goodput of the last flow of a client in Mb/s, with stock TCP and with HACK.
fn last_flow_mbps(scenario: &str, assignments: &[&str]) -> [f64; 2] {
    ["stock", "hack-more-data"].map(|scheme| {
        let options = Options {
            scenario: scenario.into(),
            assignments: assignments.iter().map(|assignment| (*assignment).to_owned()).collect(),
            scheme: Some(scheme.into()),
            clients: Some(1),
            seed: 1,
            ..Options::default()
        };
        let outcome = prepare(&options).unwrap().simulate().unwrap();
        outcome.flows.last().unwrap().goodput_bps(outcome.measured) / 1e6
    })
}

/// With one radio (EMLSR) the access point calls the client again before its backoff has run down, so the client sends only while
/// the access point has nothing for it. With all ACKs on Block Acks that was never: uploads stood still, pings were lost.
#[test]
fn hack_leaves_one_radio_time_to_send() {
    let assignments = ["traffic.kind=both", "run.duration=2 s", "run.measure-from=1 s"];
    let [stock, hack] = last_flow_mbps("wlan-11be-mlo-laptop", &assignments);
    assert!(hack > 0.6 * stock, "an upload of {stock:.0} Mb/s with stock TCP, of {hack:.0} with HACK");
}

/// Where two PPDUs ended almost together, the later one promised More Data although the other's Block Ack alone was to come. The
/// ACKs for both waited 150 ms for data that only they could bring.
#[test]
fn acks_do_not_wait_for_a_link_whose_ppdu_has_ended() {
    let assignments =
        ["traffic.kind=upload", "wired.delay=40 ms", "run.duration=3 s", "run.measure-from=1 s"];
    let [stock, hack] = last_flow_mbps("wlan-11be-mlo-5-6", &assignments);
    assert!(hack > 0.95 * stock, "an upload of {stock:.0} Mb/s with stock TCP, of {hack:.0} with HACK");
}
