//! Ideal rates against every fixed mode, and rate control against them, by simulation.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use tacit_link::wifi::error_rate::{mpdu_success, preamble_success};
use tacit_link::wifi::phy::Mode;
use tacit_runs::single::{Options, prepare_changed};
use tacit_scenario::{RateChoice, Scenario};

/// One of each PHY, with the widest modes and most streams.
const SCENARIOS: [&str; 5] = ["wlan-11a-54", "wlan-11b-11", "wlan-11g-54", "wlan-11n-600", "wlan-11ac-1733"];

fn options(scenario: &str, metres: u32, seed: u64) -> Options {
    Options {
        scenario: scenario.into(),
        assignments: vec![
            format!("wifi.distance={metres} m"),
            "run.duration=7 s".into(),
            "run.measure-from=2 s".into(),
        ],
        scheme: None,
        clients: Some(1),
        seed,
        wire: false,
        quick: false,
    }
}

/// Mean goodput in Mb/s of this mode, or of what rate control finds.
fn goodput(scenario: &str, metres: u32, control: RateChoice, mode: Option<Mode>, seeds: u64) -> f64 {
    let of_seed = |seed| {
        let change = |scenario: &mut Scenario| {
            let wifi = scenario.wifi.as_mut().unwrap();
            wifi.rate_control = control;
            wifi.mode = mode.unwrap_or(wifi.mode);
        };
        let outcome = prepare_changed(&options(scenario, metres, seed), change).unwrap().simulate().unwrap();
        outcome.goodput_bps() / 1e6
    };
    (1..=seeds).map(of_seed).sum::<f64>() / seeds as f64
}

/// Modes that could be better than `goodput` Mb/s: twice its losses leave them that much.
fn candidates(scenario: &str, metres: u32, goodput: f64) -> Vec<Mode> {
    let loaded = Scenario::load(scenario, &options(scenario, metres, 1).assignments).unwrap();
    let wifi = loaded.wifi.as_ref().unwrap();
    let signal = wifi.signal.unwrap();
    let most = |mode: &Mode| {
        let snr = signal.snr(&wifi.propagation, mode);
        mode.rate().as_mbps_f64() * preamble_success(mode, snr) * mpdu_success(mode, snr, 1538)
    };
    let mut modes = wifi.mode.and_lesser(wifi.bss.standard, wifi.bss.variant);
    modes.retain(|mode| most(mode) > goodput * 1.03);
    modes
}

/// Whether the ideal mode is as wide as the scenario's `rate`.
fn keeps_its_width(scenario: &str, metres: u32) -> bool {
    let mut width = 0;
    let prepared = prepare_changed(&options(scenario, metres, 1), |scenario| {
        let wifi = scenario.wifi.as_mut().unwrap();
        wifi.rate_control = RateChoice::Ideal;
        width = wifi.mode.width_mhz;
    });
    let (_, setup) = prepared.unwrap().into_parts();
    setup.bss[0].config.stations[0].mode.width_mhz == width
}

fn check(metres: &[u32], seeds: u64) {
    let mut wrong = Vec::new();
    for scenario in SCENARIOS {
        let mut last = f64::INFINITY;
        for metres in metres.iter().copied() {
            let ideal = goodput(scenario, metres, RateChoice::Ideal, None, seeds);
            let fixed = |mode: Mode| (goodput(scenario, metres, RateChoice::Fixed, Some(mode), seeds), mode);
            let tried = candidates(scenario, metres, ideal).into_iter().map(fixed);
            let best = tried.max_by(|one, other| one.0.total_cmp(&other.0));
            if let Some((best, mode)) = best.filter(|(best, _)| ideal < best * 0.97) {
                let share = ideal / best;
                wrong.push(format!(
                    "{scenario}, {metres} m: {ideal:.1} of {best:.1} Mb/s ({share:.3}), {mode:?}"
                ));
            }
            if ideal > last * 1.03 {
                wrong.push(format!("{scenario}, {metres} m: {ideal:.1} Mb/s, and nearer {last:.1}"));
            }
            last = ideal;
            // Minstrel keeps to the width of `rate`: where a narrower one is better it cannot follow.
            if !keeps_its_width(scenario, metres) {
                continue;
            }
            let minstrel = goodput(scenario, metres, RateChoice::Minstrel, None, seeds);
            if minstrel < 0.85 * ideal {
                wrong.push(format!("{scenario}, {metres} m: Minstrel has {minstrel:.1} of {ideal:.1} Mb/s"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn ideal_rates_are_within_three_percent_of_the_best_fixed_one() {
    check(&[1, 21, 34, 50, 90], 2);
}

#[test]
#[ignore = "half an hour: every metre; `./ci.sh figures` runs it"]
fn ideal_rates_are_within_three_percent_at_every_metre() {
    check(&(1..=100).collect::<Vec<_>>(), 3);
}
