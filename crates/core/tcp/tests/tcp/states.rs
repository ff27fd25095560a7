//! Every combination of state and segment: the state diagram of RFC 9293 section 3.3.2 as a table.

use std::fmt::Write;

use tacit_tcp::{Config, State};

use crate::script::{Script, plain};

/// How to reach each state without a relevant timer running.
const STATES: [(State, &str); 11] = [
    (State::Closed, "+0 abort\n+0 > R 1:1(0)"),
    (State::Listen, "+0 listen"),
    (State::SynSent, "+0 connect\n+0 > S 0:0(0)"),
    (State::SynReceived, "+0 listen\n+0 < S 0:0(0) <mss 1000>\n+0 > S. 0:0(0) ack 1"),
    (State::Established, ""),
    (State::FinWait1, "+0 close\n+0 > F. 1:1(0) ack 1"),
    (State::FinWait2, "+0 close\n+0 > F. 1:1(0) ack 1\n+0 < . 1:1(0) ack 2"),
    (State::CloseWait, "+0 < F. 1:1(0) ack 1\n+0 > . 1:1(0) ack 2"),
    (State::Closing, "+0 close\n+0 > F. 1:1(0) ack 1\n+0 < F. 1:1(0) ack 1\n+0 > . 2:2(0) ack 2"),
    (State::LastAck, "+0 < F. 1:1(0) ack 1\n+0 > . 1:1(0) ack 2\n+0 close\n+0 > F. 1:1(0) ack 2"),
    (State::TimeWait, "+0 close\n+0 > F. 1:1(0) ack 1\n+0 < F. 1:1(0) ack 2\n+0 > . 2:2(0) ack 2"),
];

fn in_state(state: State, way: &str) -> Script {
    let mut script = match state {
        State::Listen | State::SynSent | State::SynReceived => Script::new(plain()),
        _ => Script::connected(Config { sack: false, ..plain() }),
    };
    script.run(way);
    assert_eq!(script.connection.state(), state);
    script
}

/// Segments that arrive: `una` and `nxt` are our SND.UNA and SND.NXT, `rcv` our RCV.NXT.
fn arrivals(state: State) -> [(&'static str, String); 8] {
    let (una, nxt, rcv) = match state {
        State::Closed | State::Listen | State::SynSent => (1, 1, 0),
        State::SynReceived | State::Established => (1, 1, 1),
        State::FinWait1 => (1, 2, 1),
        State::FinWait2 => (2, 2, 1),
        State::CloseWait => (1, 1, 2),
        State::Closing | State::LastAck => (1, 2, 2),
        State::TimeWait => (2, 2, 2),
    };
    [
        ("SYN", format!("S {rcv}:{rcv}(0) <mss 1000>")),
        ("SYN,ACK", format!("S. {rcv}:{rcv}(0) ack {nxt} <mss 1000>")),
        ("ACK", format!(". {rcv}:{rcv}(0) ack {una}")),
        ("ACK of all", format!(". {rcv}:{rcv}(0) ack {nxt}")),
        ("data", format!(". {rcv}:{}(100) ack {una}", rcv + 100)),
        ("FIN", format!("F. {rcv}:{rcv}(0) ack {una}")),
        ("RST", format!("R. {rcv}:{rcv}(0) ack {nxt}")),
        ("RST off by one", format!("R. {}:{}(0) ack {nxt}", rcv + 1, rcv + 1)),
    ]
}

#[test]
fn every_segment_in_every_state() {
    let mut table = String::new();
    for (state, way) in STATES {
        let _ = writeln!(table, "{state:?}");
        for (name, segment) in arrivals(state) {
            let mut script = in_state(state, way);
            script.run_open(&format!("+10 < {segment}"));
            let next = script.connection.state();
            let next = if next == state { "-".to_owned() } else { format!("{next:?}") };
            let line = format!("  {name:14} {next:12} {}", script.replies().join("; "));
            let _ = writeln!(table, "{}", line.trim_end());
        }
    }
    insta::assert_snapshot!(table);
}
