//! `tacit theory` is a bound of what the simulator does, and a close one.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use tacit_link::wifi::phy::{GuardInterval, Mode, ResourceUnit, Standard};
use tacit_link::wifi::{MuAcknowledgment, OfdmaConfig};
use tacit_scenario::Scenario;
use tacit_scenario::scheme::find;
use tacit_theory::{Capacity, Feedback, Hop, Rounds, Traffic, capacity, round_capacity};

/// Every n-th mode of the standards with many; `TACIT_EVERY=1` takes all.
const EVERY: usize = 23;

const STANDARDS: [Standard; 7] =
    [Standard::A, Standard::B, Standard::G, Standard::N, Standard::Ac, Standard::Ax, Standard::Be];

/// The modes that a rate alone selects.
fn modes(standard: Standard) -> Vec<Mode> {
    let every = std::env::var("TACIT_EVERY").map_or(EVERY, |every| every.parse().unwrap());
    let mut modes = Mode::all(standard);
    // The sort is stable: of equal rates the first stays.
    modes.sort_by_key(Mode::rate);
    modes.dedup_by_key(|mode| mode.rate());
    let step = match modes.len() {
        0..20 => 1,
        20..100 => every.min(4),
        _ => every,
    };
    // The fastest are among them.
    modes.into_iter().rev().step_by(step).collect()
}

/// Relative standard deviation of the goodput of `cycles` cycles of `cycle_s`, from the backoffs drawn.
fn chance(hop: &Hop, cycle_s: f64, cycles: f64) -> f64 {
    let slots = f64::from(hop.phy.cw_min) + 1.0;
    let backoff_s = hop.phy.slot.as_secs_f64() * ((slots * slots - 1.0) / 12.0).sqrt();
    backoff_s / cycle_s / cycles.sqrt()
}

/// Goodput of saturated UDP of one client (`kind` of [traffic]), and its relative standard deviation from the backoffs drawn.
fn run(hop: &Hop, kind: &str, cycle_s: f64) -> (f64, f64) {
    let rate_bps = hop.data.rate().as_bps();
    let seconds = (100.0 * cycle_s).max(0.25);
    let settings = [
        format!("wifi.standard={}", hop.phy.standard.name()),
        format!("wifi.rate={}", hop.data.rate()),
        // Closed forms have none; at 1 Mb/s they take 2 % of the time.
        "wifi.beacons=none".to_owned(),
        "wifi.ap-queue=4096 packets".to_owned(),
        "wifi.station-queue=4096 packets".to_owned(),
        format!("traffic.kind={kind}"),
        format!("wired.rate={}bps", rate_bps * 11 / 10),
        "wired.queue=4096 packets".to_owned(),
        "clients.stagger=0 s".to_owned(),
        format!("run.duration={} us", 50_000 + (seconds * 1e6) as u64),
        "run.measure-from=50 ms".to_owned(),
    ];
    let scenario = Scenario::load("wlan-11n-150", &settings).unwrap();
    let udp = find("test", "udp").unwrap().applied_to(&scenario);
    let goodput = tacit_sim::run(&udp.setup(1, 1).unwrap()).unwrap().goodput_bps();
    (goodput, chance(hop, cycle_s, seconds / cycle_s))
}

#[test]
fn udp_is_at_most_one_per_cent_below_the_bound_and_never_above_it() {
    let mut wrong = Vec::new();
    for standard in STANDARDS {
        let modes = modes(standard);
        assert!(modes.len() > 2, "{}", standard.name());
        // Uploads of the fastest: the longest aggregates.
        let fastest = modes[0];
        for (mode, kind) in modes.into_iter().map(|mode| (mode, "download")).chain([(fastest, "upload")]) {
            let hop = Hop::new(standard, mode);
            let theory = capacity(&hop, &Traffic::UDP, Feedback::None);
            let bound = theory.goodput.as_bps() as f64;
            let (goodput, deviation) = run(&hop, kind, theory.airtime.total().as_secs_f64());
            let below = 1.0 - goodput / bound;
            // Three deviations: backoffs are drawn.
            if below < -3.0 * deviation || below > 0.01 + 3.0 * deviation {
                wrong.push(format!(
                    "{kind} by {} at {}: {:.2} Mb/s, bound {:.2}, {:.2} % below; chance {:.2} %",
                    standard.name(),
                    mode.rate(),
                    goodput / 1e6,
                    bound / 1e6,
                    100.0 * below,
                    100.0 * deviation
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The most that an access point can send to `clients` whose PPDUs have the best number of users, two or more.
fn bound_of_sharing(hop: Hop, clients: u32, acknowledgment: MuAcknowledgment) -> Capacity {
    let ofdma = OfdmaConfig { acknowledgment, ..OfdmaConfig::USUAL };
    let counts = ResourceUnit::ALL.map(|unit| unit.count_in(hop.data.width_mhz) as u32);
    let shared = counts.into_iter().filter(|users| (2..=clients).contains(users));
    shared
        .filter_map(|users| round_capacity(&Rounds::new(hop, users, ofdma), &Traffic::UDP, Feedback::None))
        .max_by_key(|capacity| capacity.goodput)
        .unwrap()
}

/// Stock TCP was above UDP while all that had data shared a PPDU, in units that left a seventh of the channel empty. UDP
/// may be below what one user alone would get: an access point shares unless that brings a sixteenth more.
#[test]
fn no_scheme_is_above_the_bound_of_several_users_and_udp_reaches_it() {
    let hop = Hop::new(Standard::Ax, Mode::he(11, 2, 80, GuardInterval::Ns800).unwrap());
    let alone = capacity(&hop, &Traffic::UDP, Feedback::None).goodput.as_bps() as f64;
    let ways = [
        (MuAcknowledgment::MuBar, "mu-bar", "off"),
        (MuAcknowledgment::MuBar, "mu-bar", "ack-aware"),
        (MuAcknowledgment::AggregatedMuBar, "aggregated-mu-bar", "off"),
        (MuAcknowledgment::Cascade, "cascade", "ack-aware"),
    ];
    let mut wrong = Vec::new();
    for (clients, (acknowledgment, name, triggers)) in
        [2, 6, 8, 16].into_iter().flat_map(|clients| ways.map(|way| (clients, way)))
    {
        let theory = bound_of_sharing(hop, clients, acknowledgment);
        let shared = theory.goodput.as_bps() as f64;
        let cycle_s = theory.airtime.total().as_secs_f64();
        let deviation = chance(&hop, cycle_s, 1.0 / cycle_s);
        let settings = [
            format!("wifi.ofdma={name}"),
            format!("wifi.triggers={triggers}"),
            "wifi.mu-edca=silent".to_owned(),
            "wifi.beacons=none".to_owned(),
            "clients.stagger=0 s".to_owned(),
            "run.duration=1500 ms".to_owned(),
            "run.measure-from=500 ms".to_owned(),
        ];
        let scenario = Scenario::load("wlan-11ax-1200", &settings).unwrap();
        let goodput = |scheme| {
            let setup = find("test", scheme).unwrap().applied_to(&scenario).setup(clients, 1).unwrap();
            tacit_sim::run(&setup).unwrap().goodput_bps()
        };
        let udp = goodput("udp");
        let what = format!("{clients} clients, {name}, triggers {triggers}");
        // Triggers ask for nothing that UDP has.
        if triggers == "off" && udp < shared * (0.99 - 3.0 * deviation) {
            wrong.push(format!("udp, {what}: {:.1} Mb/s of {:.1}", udp / 1e6, shared / 1e6));
        }
        let bound = alone.max(shared) * (1.0 + 3.0 * deviation);
        let above = ["stock", "hack-batch", "tack"].map(|scheme| (scheme, goodput(scheme), udp));
        for (scheme, goodput, most) in [("udp", udp, bound)].into_iter().chain(above) {
            if goodput > most {
                wrong.push(format!("{scheme}, {what}: {:.1} Mb/s, above {:.1}", goodput / 1e6, most / 1e6));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
