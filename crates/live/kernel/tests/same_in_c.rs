//! The core of TCP-RRE behaves identically in Rust and in the C code that runs in the kernel: all outputs and the whole
//! state are equal.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod compiled;
#[path = "../../../core/congestion/tests/rre/event.rs"]
#[expect(dead_code, reason = "this test writes no vectors")]
mod event;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::process::Command;

use tacit_congestion::rre::{Ack, Client, Core, Parameters, WORDS};

use compiled::{Draws, compiled};
use event::Event;

/// Number of random sequences, and of events in each.
const SEQUENCES: u64 = 1_000;
const EVENTS: usize = 1_000;

/// The event as `struct event` of `rre_host.c`.
fn bytes(event: Event) -> Vec<u8> {
    let (name, numbers) = event.name_and_numbers();
    let kinds = ["start", "handshake", "ack", "timeout", "undo", "transmit-start", "silence", "recall"];
    let kind = kinds.iter().position(|kind| *kind == name).unwrap() as u32;
    let (now_us, rest) = numbers.split_first().unwrap();
    let mut bytes = now_us.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(rest.iter().flat_map(|number| u32::try_from(*number).unwrap().to_ne_bytes()));
    bytes.resize(64, 0);
    bytes
}

/// An event of `bpf/rre_words.h` that no core has: from now on another client is meant.
fn another_client() -> Vec<u8> {
    let mut bytes = bytes(Event::Recall(0, false));
    bytes[8] += 1;
    bytes
}

/// A path with a buffer whose parameters are redrawn occasionally, so that every state is reached.
struct Link {
    now_us: u64,
    /// Bytes per second.
    link: u64,
    buffer_us: u64,
    base_us: u64,
    ack_delay_us: u64,
    tick_us: u64,
    offsets: (u32, u32),
    stamped: bool,
    /// Error of the receiver's clock.
    step_us: u64,
}

impl Link {
    fn new(draws: &mut Draws) -> Self {
        let ticks = [1_000, 2_000, 4_000, 10_000, 100_000, 1_000, 1_000];
        Self {
            now_us: draws.within(0, 1 << 40),
            link: 1 << draws.within(11, 28),
            buffer_us: 0,
            base_us: draws.within(500, 400_000),
            ack_delay_us: 0,
            tick_us: ticks[draws.within(0, 6) as usize],
            offsets: (draws.next() as u32, draws.next() as u32),
            stamped: !draws.one_in(10),
            step_us: 0,
        }
    }

    /// The next event, given the sending behaviour of `core`.
    fn event(&mut self, core: &Core, draws: &mut Draws) -> Event {
        let apart_us = match draws.within(0, 9) {
            0 => draws.within(0, 200_000),
            1..=4 => draws.within(0, 10_000),
            _ => draws.within(0, 1_000),
        };
        self.now_us += apart_us;
        let inflow = core.rate() * apart_us / self.link.max(1);
        self.buffer_us = (self.buffer_us + inflow).saturating_sub(apart_us).min(3_000_000);
        self.change(draws);
        match draws.within(0, 399) {
            0 => Event::Timeout(self.now_us),
            1 => Event::Undo(self.now_us),
            2 => Event::TransmitStart(self.now_us),
            3 => {
                self.now_us = self.now_us.max(core.silent_at_us());
                Event::Silence(self.now_us)
            }
            4 => Event::Ack(self.wild(draws)),
            _ => Event::Ack(self.ack(core, apart_us, draws)),
        }
    }

    fn change(&mut self, draws: &mut Draws) {
        match draws.within(0, 1_999) {
            0..=2 => self.link = 1 << draws.within(11, 28),
            3 => self.stamped = !self.stamped,
            4 => self.step_us = draws.within(0, 1 << 33),
            5 => self.now_us += draws.within(0, 30_000_000),
            6..=20 => self.ack_delay_us = draws.within(0, 500_000),
            21 => self.buffer_us = draws.within(0, 3_000_000),
            _ => {}
        }
    }

    fn ack(&self, core: &Core, apart_us: u64, draws: &mut Draws) -> Ack {
        let received_us = (self.now_us + (1 << 34)) - self.ack_delay_us - draws.within(0, 500) - self.step_us;
        let sent_us = received_us + self.step_us - self.base_us - self.buffer_us;
        let delivered =
            self.link.min(if self.buffer_us > 0 { u64::MAX } else { core.rate() }) * apart_us / 1_000_000;
        let rtt_us = (self.base_us + self.buffer_us + self.ack_delay_us) as u32;
        Ack {
            now_us: self.now_us,
            stamped: self.stamped,
            value: self.offsets.0.wrapping_add((received_us / self.tick_us) as u32),
            echo: self.offsets.1.wrapping_add((sent_us / 1_000) as u32),
            advanced: !draws.one_in(8),
            delivered: delivered as u32,
            lost: if draws.one_in(100) { draws.within(1, 100_000) as u32 } else { 0 },
            in_flight: draws.within(0, core.window()) as u32,
            rtt_us: if draws.one_in(5) { 0 } else { rtt_us },
            smoothed_rtt_us: rtt_us,
            limited: draws.one_in(10),
            repairing: draws.one_in(4),
        }
    }

    /// An ACK that cannot occur on a real path.
    fn wild(&self, draws: &mut Draws) -> Ack {
        Ack {
            now_us: self.now_us,
            stamped: draws.one_in(2),
            value: draws.next() as u32,
            echo: draws.next() as u32,
            advanced: draws.one_in(2),
            delivered: draws.next() as u32 >> draws.within(0, 31),
            lost: draws.next() as u32 >> draws.within(0, 31),
            in_flight: draws.next() as u32,
            rtt_us: draws.next() as u32 >> draws.within(0, 31),
            smoothed_rtt_us: draws.next() as u32 >> draws.within(0, 31),
            limited: draws.one_in(2),
            repairing: draws.one_in(2),
        }
    }
}

/// A complete sequence of events, which depends on the core's actions.
fn sequence(seed: u64) -> Vec<Event> {
    let mut draws = Draws(seed);
    let mut path = Link::new(&mut draws);
    let mss = [536, 1_220, 1_448, 8_948][draws.within(0, 3) as usize];
    let parameters = Parameters {
        mss,
        initial_window: 10 * mss,
        handshake_rtt_us: if draws.one_in(5) { 0 } else { path.base_us as u32 },
        sender_tick_us: if draws.one_in(5) { 1 } else { 1_000 },
        target_us: if draws.one_in(4) { draws.within(1, 200_000) as u32 } else { 0 },
    };
    let (mut core, mut client) = (Core::new(parameters, path.now_us), Client::default());
    let mut events = Vec::new();
    while events.len() < EVENTS {
        // The client comes back, mostly before its uplink has forwarded all ACKs.
        if events.is_empty() || draws.one_in(EVENTS as u64 / 3) {
            events.push(Event::Start(path.now_us, parameters));
            core = Core::new(parameters, path.now_us);
            if path.stamped {
                let ack = path.ack(&core, 0, &mut draws);
                events.push(Event::Handshake(path.now_us, ack.value, ack.echo));
            }
            events.push(Event::Recall(path.now_us, draws.one_in(2)));
            let of_start = events.iter().rposition(|event| matches!(event, Event::Start(..))).unwrap();
            for event in &events[of_start + 1..] {
                event.happen_to(&mut core, &mut client);
            }
        }
        let event = path.event(&core, &mut draws);
        event.happen_to(&mut core, &mut client);
        events.push(event);
    }
    events
}

/// A sequence of values that cannot occur on a real path.
fn wild(seed: u64) -> Vec<Event> {
    let mut draws = Draws(!seed);
    let mut path = Link::new(&mut draws);
    let parameters = Parameters { mss: 1_448, sender_tick_us: 1, ..Parameters::default() };
    let mut events = vec![Event::Start(path.now_us, parameters)];
    events.extend((1..EVENTS).map(|_| {
        path.now_us += draws.next() >> draws.within(40, 63);
        Event::Ack(path.wild(&mut draws))
    }));
    events
}

/// The events of `vectors/rre`.
fn golden() -> Vec<Vec<Event>> {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../vectors/rre");
    let files = std::fs::read_dir(vectors).unwrap().map(|file| file.unwrap().path());
    let texts = files.filter(|file| file.extension().is_some_and(|extension| extension == "txt"));
    let texts: Vec<_> = texts.map(|file| std::fs::read_to_string(file).unwrap()).collect();
    assert!(texts.len() > 20, "{} vectors", texts.len());
    let events = |text: &String| {
        text.lines().filter(|line| !line.starts_with('#')).map(|line| Event::parse(line).unwrap()).collect()
    };
    texts.iter().map(events).collect()
}

/// Number of words of the C code: its state, when its silence timer is due, and what is known of the client.
const ALL_WORDS: usize = WORDS + 5;

/// [`Core::words`] has the bound there.
const BOUND_AT: usize = 86;

/// All of them after an event.
type Words = [u64; ALL_WORDS];

fn words_of(bytes: &[u8]) -> Words {
    let words: Vec<u64> =
        bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
    words.try_into().unwrap()
}

/// The state of the C code on this machine after each of `events`.
fn on_the_host(program: &Path, directory: &Path, events: &[Event]) -> Vec<Words> {
    let file = directory.join("events");
    std::fs::write(&file, events.iter().flat_map(|event| bytes(*event)).collect::<Vec<u8>>()).unwrap();
    let output = Command::new(program).stdin(File::open(&file).unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout.chunks_exact(8 * ALL_WORDS).map(words_of).collect()
}

/// What the events of all sequences reached.
#[derive(Default)]
struct Seen {
    /// States, and verdicts on the clock.
    states: BTreeSet<(u64, u64)>,
    /// Whether the connection was bounded, and whether its client was known to need that or found not to.
    clients: BTreeSet<(bool, bool, bool)>,
}

impl Seen {
    /// Bounded connections, of clients that were then found not to need it too, and clients that were found to need it.
    fn has_all_clients(&self) -> bool {
        [(true, true, false), (true, false, true), (false, true, false)]
            .iter()
            .all(|client| self.clients.contains(client))
    }
}

/// Compares the state of both after each event, and when the silence timer is due.
fn compare(
    sequences: impl Iterator<Item = Vec<Event>>,
    mut answers: impl FnMut(&[Event]) -> Vec<Words>,
) -> Seen {
    let mut seen = Seen::default();
    for (number, events) in sequences.enumerate() {
        let answers = answers(&events);
        assert_eq!(answers.len(), events.len(), "sequence {number}");
        let (mut core, mut client) = (Core::new(Parameters::default(), 0), Client::default());
        for (step, (event, in_c)) in events.into_iter().zip(answers).enumerate() {
            let before = core.words();
            event.happen_to(&mut core, &mut client);
            let Client { heard_us, wait_us, excess_us, vain_us } = client;
            let known = [core.silent_at_us(), heard_us, wait_us, excess_us, vain_us];
            let in_rust = [&core.words()[..], &known].concat();
            assert_eq!(in_c[..], in_rust, "sequence {number}, event {step}: {event:?} after {before:?}");
            seen.states.insert((in_rust[5], in_rust[7]));
            seen.clients.insert((in_rust[BOUND_AT] > 0, excess_us > 0, vain_us > 0));
        }
    }
    seen
}

#[test]
fn a_million_random_events_leave_the_same_in_both() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compiled("rre_host", directory.path()) else { return };
    let seen =
        compare((0..SEQUENCES).map(sequence), |events| on_the_host(&program, directory.path(), events));
    let all: BTreeSet<_> = (0..5).flat_map(|state| (1..3).map(move |trust| (state, trust))).collect();
    let Seen { states, clients } = &seen;
    assert!(states.is_superset(&all), "not every state was reached with and without a clock: {states:?}");
    assert!(seen.has_all_clients(), "not every kind of client was reached: {clients:?}");
}

#[test]
fn numbers_of_no_path_leave_the_same_in_both() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compiled("rre_host", directory.path()) else { return };
    compare((0..20).map(wild), |events| on_the_host(&program, directory.path(), events));
}

#[test]
fn the_golden_vectors_leave_the_same_in_both() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compiled("rre_host", directory.path()) else { return };
    compare(golden().into_iter(), |events| on_the_host(&program, directory.path(), events));
}

/// The C code as compiled by this machine's kernel.
mod loaded {
    use std::io::Write as _;

    use tacit_kernel::object::{Kind, Loaded, Object};

    use super::*;

    /// Number of sequences that run in the kernel. Each event takes two system calls.
    const LOADED_SEQUENCES: u64 = 200;

    /// The loaded program; `None`, with a message, if the kernel does not permit it.
    fn program() -> Option<Loaded> {
        let object = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf/step.bpf.o")).unwrap();
        match Object::parse(&object).unwrap().load(&[("rre_step", Kind::Syscall)]) {
            Ok(loaded) => Some(loaded),
            Err(error) if nix::unistd::Uid::effective().is_root() => panic!("{error}"),
            Err(error) => {
                let message = format!("SKIPPED: {error}: THE LOADED PROGRAM WAS NOT COMPARED WITH THE RUST");
                let _ = writeln!(std::io::stderr(), "{message}");
                None
            }
        }
    }

    fn in_the_kernel(loaded: &Loaded, events: &[Event]) -> Vec<Words> {
        // Of another client than that of the sequence before.
        loaded.run("rre_step", &mut another_client()).unwrap();
        let step = |event: &Event| {
            loaded.run("rre_step", &mut bytes(*event)).unwrap();
            let value = loaded.value("step_state").unwrap();
            words_of(&value[value.len() - 8 * ALL_WORDS..])
        };
        events.iter().map(step).collect()
    }

    #[test]
    #[ignore = "loads eBPF, as root: ./ci.sh hops"]
    fn the_kernel_remembers_the_same() {
        let Some(object) = program() else { return };
        compare(golden().into_iter(), |events| in_the_kernel(&object, events));
        compare((0..20).map(wild), |events| in_the_kernel(&object, events));
        let seen = compare((0..LOADED_SEQUENCES).map(sequence), |events| in_the_kernel(&object, events));
        let Seen { states, clients } = &seen;
        assert!(states.len() >= 10, "not every state was reached with and without a clock: {states:?}");
        assert!(seen.has_all_clients(), "not every kind of client was reached: {clients:?}");
    }
}
