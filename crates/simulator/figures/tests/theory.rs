//! `tacit theory` is a bound of what the simulator does, and a close one.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use tacit_link::wifi::phy::{Mode, Standard};
use tacit_scenario::Scenario;
use tacit_scenario::scheme::find;
use tacit_theory::{Feedback, Hop, Traffic, capacity};

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

/// Goodput of saturated UDP downloads to one client, and its relative standard deviation from the backoffs drawn.
fn run(hop: &Hop, cycle_s: f64) -> (f64, f64) {
    let rate_bps = hop.data.rate().as_bps();
    let seconds = (100.0 * cycle_s).max(0.25);
    let settings = [
        format!("wifi.standard={}", hop.phy.standard.name()),
        format!("wifi.rate={}", hop.data.rate()),
        // Closed forms have none; at 1 Mb/s they take 2 % of the time.
        "wifi.beacons=none".to_owned(),
        "wifi.ap-queue=4096 packets".to_owned(),
        format!("wired.rate={}bps", rate_bps * 11 / 10),
        "wired.queue=4096 packets".to_owned(),
        "clients.stagger=0 s".to_owned(),
        format!("run.duration={} us", 50_000 + (seconds * 1e6) as u64),
        "run.measure-from=50 ms".to_owned(),
    ];
    let scenario = Scenario::load("wlan-11n-150", &settings).unwrap();
    let udp = find("test", "udp").unwrap().applied_to(&scenario);
    let goodput = tacit_sim::run(&udp.setup(1, 1).unwrap()).unwrap().goodput_bps();
    let slots = f64::from(hop.phy.cw_min) + 1.0;
    let backoff_s = hop.phy.slot.as_secs_f64() * ((slots * slots - 1.0) / 12.0).sqrt();
    (goodput, backoff_s / cycle_s / (seconds / cycle_s).sqrt())
}

#[test]
fn udp_is_at_most_one_per_cent_below_the_bound_and_never_above_it() {
    let mut wrong = Vec::new();
    for standard in STANDARDS {
        let modes = modes(standard);
        assert!(modes.len() > 2, "{}", standard.name());
        for mode in modes {
            let hop = Hop::new(standard, mode);
            let theory = capacity(&hop, &Traffic::UDP, Feedback::None);
            let bound = theory.goodput.as_bps() as f64;
            let (goodput, deviation) = run(&hop, theory.airtime.total().as_secs_f64());
            let below = 1.0 - goodput / bound;
            // Three deviations: backoffs are drawn.
            if below < -3.0 * deviation || below > 0.01 + 3.0 * deviation {
                wrong.push(format!(
                    "{} at {}: {:.2} Mb/s, bound {:.2}, {:.2} % below; chance {:.2} %",
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
