use super::*;
use crate::wifi::phy::{GuardInterval, Standard};

fn over(config: &BssConfig) -> TcpOver<'_> {
    TcpOver { config, packet: 1500, round_trip: Duration::from_millis(20) }
}

/// The chosen mode becomes faster as the SNR grows, and no other mode has a higher goodput.
#[test]
fn the_ideal_rate_follows_the_envelope() {
    for standard in Standard::ALL {
        let config = BssConfig::new(standard, Vec::new());
        let over = over(&config);
        let one_stream = || Mode::all(standard).into_iter().filter(|mode| mode.streams == 1);
        let mut last = 0.0;
        for snr in (-5_000..45_000).step_by(1_000).map(Decibels::from_millis) {
            let best = over.ideal_mode(one_stream(), |_| snr).unwrap();
            let most = over.goodput(&best, snr);
            assert!(one_stream().all(|mode| over.goodput(&mode, snr) <= most), "{standard:?} at {snr}");
            assert!(most >= last, "{standard:?} at {snr}: {most} after {last}");
            last = most;
        }
        let fastest = one_stream().map(|mode| mode.rate()).max().unwrap();
        assert_eq!(over.ideal_mode(one_stream(), |_| Decibels::from_db(60.0)).unwrap().rate(), fastest);
    }
    let config = BssConfig::new(Standard::A, Vec::new());
    assert_eq!(over(&config).ideal_mode([], |_| Decibels::from_db(10.0)), None);
}

/// A mode whose bound is below another's throughput therefore need not be simulated. At high loss, 400 simulated
/// exchanges leave a larger error.
#[test]
fn nothing_carries_more_than_its_bound_and_without_losses_nearly_all_of_it_but_the_answers() {
    for standard in [Standard::A, Standard::N, Standard::Ac, Standard::Be] {
        let config = BssConfig::new(standard, Vec::new());
        let over = over(&config);
        for snr in (0..45_000).step_by(3_000).map(Decibels::from_millis) {
            let one_stream = Mode::all(standard).into_iter().filter(|mode| mode.streams == 1);
            for mode in one_stream.filter(|mode| over.success(mode, snr) > 0.9) {
                let (goodput, bound) = (over.goodput(&mode, snr), over.bound(&mode, snr));
                assert!(goodput < bound * 1.05, "{goodput} of {bound}: {mode:?} at {snr}");
            }
        }
        let fastest = Mode::all(standard).into_iter().max_by_key(|mode| mode.rate()).unwrap();
        let clear = Decibels::from_db(60.0);
        let share = over.goodput(&fastest, clear) / over.bound(&fastest, clear);
        assert!(share > 0.5, "{standard:?}: {share}");
    }
}

/// A mode that loses two of five MPDUs carries more bytes than the next slower one, but starves TCP.
#[test]
fn a_rate_that_starves_tcp_is_not_ideal() {
    let config = BssConfig::new(Standard::Ac, Vec::new());
    let over = over(&config);
    let slowest = Mode::vht(0, 1, 20, GuardInterval::Ns800).unwrap();
    for snr in (2_000..40_000).step_by(250).map(Decibels::from_millis) {
        let best = over.ideal_mode(Mode::all(Standard::Ac), |_| snr).unwrap();
        // Where even the slowest mode fails, no choice is left.
        if over.success(&slowest, snr) > 0.9 {
            let success = over.success(&best, snr);
            assert!(success > 0.65, "{success} at {snr}: {best:?}");
        }
    }
}
