//! A client with one radio for several links (EMLSR) that sends beside its download.

use tacit_runs::single::{Options, prepare};

/// The access point calls the client again before its backoff has run down, so the client sends only while the access point has
/// nothing for it. With all ACKs on Block Acks that was never: uploads stood still, pings were lost.
#[test]
fn hack_leaves_it_time_to_send() {
    let uploads_mbps = ["stock", "hack-more-data"].map(|scheme| {
        let assignments = ["traffic.kind=both", "run.duration=2 s", "run.measure-from=1 s"];
        let options = Options {
            scenario: "wlan-11be-mlo-laptop".into(),
            assignments: assignments.map(Into::into).into(),
            scheme: Some(scheme.into()),
            clients: Some(1),
            seed: 1,
            wire: false,
            quick: false,
        };
        let outcome = prepare(&options).unwrap().simulate().unwrap();
        outcome.flows[1].goodput_bps(outcome.measured) / 1e6
    });
    let [stock, hack] = uploads_mbps;
    assert!(hack > 0.6 * stock, "an upload of {stock:.0} Mb/s with stock TCP, of {hack:.0} with HACK");
}
