//! A stronger impairment must not improve goodput: random pairs of distances, losses, rates and client counts.

use tacit_link::random::Stream;
use tacit_runs::single::{Options, prepare};

/// Number of pairs per property.
const PAIRS: u32 = 6;
/// Tolerance for randomness in such short runs.
const TOLERANCE: f64 = 1.08;
const SCHEMES: [&str; 4] = ["udp", "stock", "tcp-l8", "hack-more-data"];
const SEEDS: u64 = 2;

/// Mean goodput in Mb/s.
fn goodput(scenario: &str, scheme: &str, clients: u32, set: &[String]) -> f64 {
    // CUBIC of Linux would still be in slow start in such short runs.
    let short =
        ["run.duration=4 s", "run.measure-from=1 s", "clients.stagger=10 ms", "tcp.slow-start=hystart"];
    let of_seed = |seed| {
        let options = Options {
            scenario: scenario.into(),
            assignments: short.map(str::to_owned).into_iter().chain(set.iter().cloned()).collect(),
            scheme: Some(scheme.into()),
            clients: Some(clients),
            seed,
            ..Options::default()
        };
        prepare(&options).unwrap().simulate().unwrap().goodput_bps() / 1e6
    };
    (1..=SEEDS).map(of_seed).sum::<f64>() / SEEDS as f64
}

struct Draws(Stream);

impl Draws {
    fn new(what: &str) -> Self {
        Self(Stream::new(32, what))
    }

    /// A random number from 0 to `most`.
    fn up_to(&mut self, most: u32) -> u32 {
        self.0.up_to(most)
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.up_to(all.len() as u32 - 1) as usize]
    }
}

/// Fails if the worse of a pair has more goodput than the better one, beyond the tolerance.
fn not_more(what: &str, worse: f64, better: f64) {
    println!("{what}: {worse:.2} after {better:.2}");
    assert!(worse <= better * TOLERANCE, "{what}: {worse:.2} after {better:.2}");
}

#[test]
fn farther_away_there_is_not_more() {
    let mut draws = Draws::new("distance");
    for _ in 0..PAIRS {
        let scenario = draws.pick(&["wlan-11a-54", "wlan-11g-54", "wlan-11n-150", "wlan-11ac-433"]);
        let (scheme, near) = (draws.pick(&SCHEMES), 1 + draws.up_to(59));
        let far = near + 3 + draws.up_to(30);
        let at = |metres: u32| {
            let set = [format!("wifi.distance={metres} m"), "wifi.rate-control=ideal".to_owned()];
            goodput(scenario, scheme, 1, &set)
        };
        not_more(&format!("{scenario} {scheme}, {near} to {far} m"), at(far), at(near));
    }
}

#[test]
fn with_more_loss_there_is_not_more() {
    let mut draws = Draws::new("loss");
    for _ in 0..PAIRS {
        let scenario = draws.pick(&["wlan-11a-54", "wlan-11n-150", "wlan-11ac-433"]);
        let (scheme, clients) = (draws.pick(&SCHEMES), 1 + draws.up_to(3));
        let (less, further) = (draws.up_to(20), 3 + draws.up_to(20));
        let at = |percent: u32| goodput(scenario, scheme, clients, &[format!("wifi.mpdu-error={percent} %")]);
        let what = format!("{scenario} {scheme}, {clients} clients, {less} to {} %", less + further);
        not_more(&what, at(less + further), at(less));
    }
}

#[test]
fn at_a_lower_rate_there_is_not_more() {
    let mut draws = Draws::new("rate");
    let of_a: &[&str] = &["6Mbps", "9Mbps", "12Mbps", "18Mbps", "24Mbps", "36Mbps", "48Mbps", "54Mbps"];
    let of_n: &[&str] = &["15Mbps", "30Mbps", "45Mbps", "60Mbps", "90Mbps", "120Mbps", "135Mbps", "150Mbps"];
    for _ in 0..PAIRS {
        let (scenario, rates) = draws.pick(&[("wlan-11a-54", of_a), ("wlan-11n-150", of_n)]);
        let (scheme, clients) = (draws.pick(&SCHEMES), 1 + draws.up_to(3));
        let low = draws.up_to(rates.len() as u32 - 2) as usize;
        let high = low + 1 + draws.up_to((rates.len() - low - 2) as u32) as usize;
        let at = |rate: usize| goodput(scenario, scheme, clients, &[format!("wifi.rate={}", rates[rate])]);
        let what = format!("{scenario} {scheme}, {clients} clients, {} to {}", rates[high], rates[low]);
        not_more(&what, at(low), at(high));
    }
}

/// Two contending stations may have more goodput in total than one, whose backoff overlaps with no other, but not each
/// of them.
#[test]
fn among_more_clients_each_has_not_more() {
    let mut draws = Draws::new("clients");
    for _ in 0..PAIRS {
        let scenario = draws.pick(&["wlan-11a-54", "wlan-11n-150", "wlan-11ac-433"]);
        let (scheme, kind) = (draws.pick(&SCHEMES), draws.pick(&["download", "upload"]));
        let few = 1 + draws.up_to(5);
        let many = few + 1 + draws.up_to(8);
        let each = |clients: u32| {
            goodput(scenario, scheme, clients, &[format!("traffic.kind={kind}")]) / f64::from(clients)
        };
        not_more(&format!("{scenario} {scheme}, {kind}, {few} to {many} clients"), each(many), each(few));
    }
}
