//! Access categories in whole worlds: their shares, and TCP/HACK in each of them.

use crate::common::*;
use tacit_between::hack;
use tacit_link::wifi::AccessCategory;
use tacit_link::wifi::phy::Standard;
use tacit_sim::setup::Setup;
use tacit_sim::{RunError, run};
use tacit_tcp as tcp;

/// Two clients with one upload each, in these categories.
fn uploads(categories: [AccessCategory; 2]) -> Setup {
    let mut setup = wlan(Standard::N, 150, 2, &bulk(tcp::Config::default()));
    setup.bss[0].config.categories = AccessCategory::ALL.to_vec();
    for (flow, category) in setup.flows.iter_mut().zip(categories) {
        std::mem::swap(&mut flow.source, &mut flow.sink);
        flow.access_category = category;
    }
    setup
}

#[test]
fn voice_gets_more_than_best_effort() {
    let outcome = run(&uploads([AccessCategory::Voice, AccessCategory::BestEffort])).unwrap();
    let [voice, best_effort] = [0, 1].map(|flow| outcome.flows[flow].delivered.0);
    assert!(voice > 2 * best_effort, "{voice} and {best_effort}");
}

#[test]
fn hack_works_in_every_category() {
    for category in AccessCategory::ALL {
        let mut setup = uploads([category, AccessCategory::BestEffort]);
        for flow in &mut setup.flows {
            std::mem::swap(&mut flow.source, &mut flow.sink);
        }
        let stock = run(&setup).unwrap();
        speak_hack(&mut setup, hack::Config::default());
        let outcome = run(&setup).unwrap();
        let acks = [0, 1].map(|flow| outcome.flows[flow].hack.unwrap());
        assert!(acks[0].compressed_acks > 4 * acks[0].native_acks, "{category:?}: {acks:?}");
        // If the other category leaves little airtime, there is rarely more data to announce.
        assert!(acks[1].compressed_acks > 0, "{category:?}: {acks:?}");
        let all =
            |outcome: &tacit_sim::RunOutcome| outcome.flows.iter().map(|flow| flow.delivered.0).sum::<u64>();
        assert!(all(&outcome) > all(&stock), "{category:?}");
    }
}

#[test]
fn categories_nobody_uses_change_nothing_that_counts() {
    let one = wlan(Standard::N, 150, 2, &bulk(tcp::Config::default()));
    let mut four = one.clone();
    four.bss[0].config.categories =
        [AccessCategory::BestEffort, AccessCategory::Voice, AccessCategory::Video].to_vec();
    let (one, four) = (run(&one).unwrap(), run(&four).unwrap());
    assert_eq!(one.bss[0].airtime, four.bss[0].airtime);
    for (one, four) in one.bss[0].stations.iter().zip(&four.bss[0].stations) {
        assert_eq!((one.counters, one.airtime), (four.counters, four.airtime));
        assert_eq!((one.queueing_delay_us, &one.ppdu_sizes), (four.queueing_delay_us, &four.ppdu_sizes));
    }
}

#[test]
fn dcf_has_one_category() {
    let mut setup = wlan(Standard::A, 54, 1, &bulk(tcp::Config::default()));
    setup.bss[0].config.categories = vec![AccessCategory::Voice];
    assert!(matches!(run(&setup), Err(RunError::Setup(_))));
}
