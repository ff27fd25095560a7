//! Events of a core, and a line of text for each with the core's state after it.

use std::fmt::Write as _;

use tacit_congestion::rre::{Ack, Client, Core, Parameters, State, Trust};

/// Format of the lines in a file of vectors.
pub const FORMAT: &str = "\
# Times are in microseconds, amounts in bytes, rates in bytes per second. Each line is an event, and after = the core's
# answer. Events:
# start NOW MSS INITIAL-WINDOW HANDSHAKE-RTT SENDER-TICK TARGET
# handshake NOW TSVAL TSECR
# ack NOW HAS-TIMESTAMPS TSVAL TSECR ADVANCED DELIVERED LOST IN-FLIGHT RTT SMOOTHED-RTT LIMITED REPAIRING
# timeout NOW, undo NOW, transmit-start NOW, silence NOW
# recall NOW SYN-REPEATED: before the first data, what earlier connections showed of the client
# Then: RATE WINDOW STATE RECEIVE-RATE BUFFER-DELAY CLOCK TICK SILENT-AT
";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Start(u64, Parameters),
    Handshake(u64, u32, u32),
    Ack(Ack),
    Timeout(u64),
    Undo(u64),
    TransmitStart(u64),
    Silence(u64),
    Recall(u64, bool),
}

impl Event {
    /// Applies the event to `core`, for an unknown client; a start replaces it.
    pub fn happen(self, core: &mut Core) {
        self.happen_to(core, &mut Client::default());
    }

    /// Applies the event to `core` and to what is known of its client across connections.
    pub fn happen_to(self, core: &mut Core, client: &mut Client) {
        match self {
            Self::Recall(now_us, repeated) => core.recall(client, now_us, repeated),
            Self::Start(now_us, parameters) => *core = Core::new(parameters, now_us),
            Self::Handshake(now_us, value, echo) => core.on_handshake(now_us, value, echo),
            Self::Ack(ack) => core.on_ack(&ack),
            Self::Timeout(now_us) => core.on_timeout(now_us),
            Self::Undo(_) => core.on_undo(),
            Self::TransmitStart(now_us) => core.on_transmit_start(now_us),
            Self::Silence(now_us) => core.on_silence(now_us),
        }
        if core.has_evidence() {
            core.update_client(client);
        }
    }

    /// Its name, and its numbers in the order of [`FORMAT`]; the first one is the time.
    pub fn name_and_numbers(self) -> (&'static str, Vec<u64>) {
        let wide = |now_us, numbers: &[u32]| {
            [now_us].into_iter().chain(numbers.iter().map(|number| u64::from(*number))).collect()
        };
        match self {
            Self::Start(now, p) => {
                let numbers = [p.mss, p.initial_window, p.handshake_rtt_us, p.sender_tick_us, p.target_us];
                ("start", wide(now, &numbers))
            }
            Self::Handshake(now, value, echo) => ("handshake", wide(now, &[value, echo])),
            Self::Ack(a) => {
                let [stamped, advanced, limited, repairing] =
                    [a.stamped, a.advanced, a.limited, a.repairing].map(u32::from);
                let received = [stamped, a.value, a.echo, advanced, a.delivered, a.lost, a.in_flight];
                let rest = [a.rtt_us, a.smoothed_rtt_us, limited, repairing];
                ("ack", wide(a.now_us, &[&received[..], &rest[..]].concat()))
            }
            Self::Timeout(now) => ("timeout", vec![now]),
            Self::Undo(now) => ("undo", vec![now]),
            Self::TransmitStart(now) => ("transmit-start", vec![now]),
            Self::Silence(now) => ("silence", vec![now]),
            Self::Recall(now, repeated) => ("recall", wide(now, &[u32::from(repeated)])),
        }
    }

    /// Parses the event of a line; `None` if there is none.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(" = ").next()?.split(' ');
        let name = words.next()?;
        let numbers: Vec<u64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let (now, rest) = numbers.split_first()?;
        let rest: Vec<u32> = rest.iter().map(|number| u32::try_from(*number).ok()).collect::<Option<_>>()?;
        Some(match (name, rest[..].as_ref()) {
            ("start", &[mss, initial_window, handshake_rtt_us, sender_tick_us, target_us]) => Self::Start(
                *now,
                Parameters { mss, initial_window, handshake_rtt_us, sender_tick_us, target_us },
            ),
            ("handshake", &[value, echo]) => Self::Handshake(*now, value, echo),
            (
                "ack",
                &[
                    stamped,
                    value,
                    echo,
                    advanced,
                    delivered,
                    lost,
                    in_flight,
                    rtt_us,
                    smoothed_rtt_us,
                    limited,
                    repairing,
                ],
            ) => Self::Ack(Ack {
                now_us: *now,
                stamped: stamped == 1,
                value,
                echo,
                advanced: advanced == 1,
                delivered,
                lost,
                in_flight,
                rtt_us,
                smoothed_rtt_us,
                limited: limited == 1,
                repairing: repairing == 1,
            }),
            ("timeout", []) => Self::Timeout(*now),
            ("undo", []) => Self::Undo(*now),
            ("transmit-start", []) => Self::TransmitStart(*now),
            ("silence", []) => Self::Silence(*now),
            ("recall", &[repeated]) => Self::Recall(*now, repeated == 1),
            _ => return None,
        })
    }

    /// The event, and the state of `core` after it.
    pub fn line(self, core: &Core) -> String {
        let (name, numbers) = self.name_and_numbers();
        let mut line = name.to_owned();
        for number in numbers {
            let _ = write!(line, " {number}");
        }
        let (trust, tick_us) = core.clock();
        let trust = match trust {
            Trust::Unknown => "unknown",
            Trust::Trusted => "trusted",
            Trust::Refused => "refused",
        };
        let state = core.state().name();
        let (rate, window, found) = (core.rate(), core.window(), core.receive_rate());
        let (buffer_us, silent_us) = (core.buffer_us(), core.silent_at_us());
        let _ = write!(line, " = {rate} {window} {state} {found} {buffer_us} {trust} {tick_us} {silent_us}");
        line
    }
}

/// States are identified by their names.
#[test]
fn names_of_states_differ() {
    let names: std::collections::BTreeSet<_> = State::ALL.iter().map(|state| state.name()).collect();
    assert_eq!(names.len(), State::ALL.len());
}
