//! Warnings about settings that have no effect on the runs of a scenario. They are not errors, but probably not what
//! the author intended.

use tacit_link::wifi::error_rate::{mpdu_success, preamble_success};
use tacit_link::wifi::phy::{Mode, block_ack_len, mpdu_len};
use tacit_link::wifi::{BssConfig, Decibels, RateControl, StationConfig};
use tacit_packet::units::{HostId, Instant};
use tacit_sim::Setup;

use crate::build::FULL_PACKET;
use crate::explain::explain;
use crate::scheme::{Role, Scheme};
use crate::table::{count, percent};
use crate::{InputError, Scenario, effective, quoted};

/// Tables and keys that do not affect the events of a single run, except for its duration.
const NOT_OF_A_RUN: [&str; 5] = ["run", "compare", "clients", "name", "description"];

/// Warnings about `--set` assignments that `schemes` override or that have no effect, one line each. Returns none if
/// the scenario is invalid, because the error message is more informative.
pub fn of_assignments(
    name_or_path: &str,
    assignments: &[String],
    schemes: &[&Scheme],
    clients: u32,
) -> Vec<String> {
    // In a comparison, TCP settings apply to all schemes except the bound, which has no TCP.
    let has_others = schemes.iter().any(|scheme| scheme.role != Role::Bound);
    let schemes: Vec<&Scheme> =
        schemes.iter().copied().filter(|scheme| !has_others || scheme.role != Role::Bound).collect();
    let last_of_its_key = |at: usize| {
        let key = key_of(&assignments[at]);
        assignments[at + 1..].iter().all(|later| key_of(later) != key)
    };
    (0..assignments.len())
        .filter(|at| last_of_its_key(*at))
        .filter_map(|at| of_assignment(name_or_path, assignments, &assignments[at], &schemes, clients))
        .collect()
}

fn key_of(assignment: &str) -> &str {
    assignment.split('=').next().unwrap_or(assignment).trim()
}

fn of_assignment(
    name_or_path: &str,
    assignments: &[String],
    assignment: &str,
    schemes: &[&Scheme],
    clients: u32,
) -> Option<String> {
    let key = key_of(assignment);
    if NOT_OF_A_RUN.contains(&key.split('.').next()?) {
        return None;
    }
    let others: Vec<String> = assignments.iter().filter(|other| key_of(other) != key).cloned().collect();
    let load = |assignments: &[String]| Scenario::load(name_or_path, assignments).ok();
    let (with, without) = (load(assignments)?, load(&others)?);
    let value = |assignments: &[String]| {
        let explained = explain(name_or_path, assignments, None, &[key.to_owned()]).ok()?;
        explained.settings.into_iter().next().map(|setting| setting.value)
    };
    let given_value = value(assignments);
    if given_value.is_some() && given_value == value(&others) {
        // The assignment sets the value that applies anyway.
        return None;
    }
    let setup = |scenario: &Scenario, scheme: &Scheme| scheme.applied_to(scenario).setup(clients, 1).ok();
    let counts = |scheme: &&&Scheme| setup(&with, scheme) != setup(&without, scheme);
    let names = |schemes: &[&Scheme]| schemes.iter().map(|scheme| scheme.name).collect::<Vec<_>>().join(", ");
    let overriding: Vec<&Scheme> =
        schemes.iter().copied().filter(|scheme| overrides(scheme, key, &with)).collect();
    let set = format!("--set {}", quoted(assignment));
    let see = format!("tacit explain {} {key}", quoted(name_or_path));
    if schemes.iter().any(|scheme| counts(&scheme)) {
        return (!overriding.is_empty())
            .then(|| format!("{set} does not count under {}, which set it themselves", names(&overriding)));
    }
    let under = match schemes {
        [one] if one.argument().is_none() => "here".to_owned(),
        several => format!("under {}", names(several)),
    };
    Some(format!("{set} changes nothing {under}: see {see}"))
}

/// Refuses a sweep over a key whose values all give the same runs under each of `schemes`: its rows would be equal.
/// `places` are the assignments at each place, `clients` the counts that are asked for.
///
/// # Errors
/// If there is such a key.
pub fn check_sweep(
    name_or_path: &str,
    assignments: &[String],
    places: &[Vec<String>],
    schemes: &[&Scheme],
    clients: &[u32],
) -> Result<(), InputError> {
    let Some(first) = places.first() else { return Ok(()) };
    for (index, assignment) in first.iter().enumerate() {
        let key = key_of(assignment);
        if NOT_OF_A_RUN.contains(&key.split('.').next().unwrap_or(key)) {
            continue;
        }
        // The places that differ from the first one in this key alone.
        let is_along = |at: &&Vec<String>| {
            (0..first.len()).all(|other| other == index || at.get(other) == first.get(other))
        };
        let along: Vec<&Vec<String>> = places.iter().filter(is_along).collect();
        let setups = |at: &Vec<String>| {
            let scenario = Scenario::load(name_or_path, &[assignments, at.as_slice()].concat()).ok()?;
            let count = scenario.compared_counts(clients).ok()?.into_iter().max()?;
            schemes
                .iter()
                .map(|scheme| scheme.applied_to(&scenario).setup(count, 1).ok())
                .collect::<Option<Vec<_>>>()
        };
        let Some(same) = setups(first) else { continue };
        if along.len() > 1 && along.iter().all(|at| setups(at).is_some_and(|here| here == same)) {
            let names = schemes.iter().map(|scheme| scheme.name).collect::<Vec<_>>().join(", ");
            let what = format!("{key} changes nothing under {names}: all places would have the same runs");
            let allowed =
                format!("a key that one of them reads; tacit explain {} {key}", quoted(name_or_path));
            return Err(InputError::new("--sweep", what).allowed(allowed));
        }
    }
    Ok(())
}

/// True if `scheme` changes the value of `key` in `scenario`.
fn overrides(scheme: &Scheme, key: &str, scenario: &Scenario) -> bool {
    let changed = scheme.applied_to(scenario);
    let value = |scenario: &Scenario| effective::value_of(key, scenario).map(|(value, _)| value);
    value(scenario) != value(&changed)
}

/// Warnings about traffic and settings that are missing from the results of a run, one line per reason.
pub fn of_setup(setup: &Setup) -> Vec<String> {
    let mut warnings = of_times(setup);
    warnings.extend(of_idle_clients(setup));
    for bss in &setup.bss {
        warnings.extend(of_signals(&bss.config));
    }
    warnings
}

/// A client is out of range if less than this fraction of its data arrives.
const IN_REACH: f64 = 0.1;
/// A rate of link-layer ACKs suits the signal if more than this fraction of them arrives.
const DECODABLE: f64 = 0.9;

/// Warnings about clients out of range of the access point, about clients whose link-layer ACKs are sent at too high a
/// rate for the signal, and about direct links for the same reasons.
fn of_signals(config: &BssConfig) -> Vec<String> {
    let clients = config.stations.iter().zip(1..).map(|(client, number)| (number.to_string(), client));
    // Both directions of a link are equal.
    let direct = config.direct_links.iter().filter(|link| link.from < link.to);
    let direct = direct.map(|link| (format!("{}-{}", link.from.0, link.to.0), &link.link));
    let clients = of_links(config, clients, "client", "wifi.distance, wifi.snr");
    let direct = of_links(config, direct, "direct link", "wifi.direct-distance, wifi.direct-snr");
    clients.into_iter().chain(direct).collect()
}

/// The warnings of [`of_signals`] about `links`, each with its name. `called` is the kind of link, and `keys` are the
/// settings of its signal.
fn of_links<'a>(
    config: &BssConfig,
    links: impl Iterator<Item = (String, &'a StationConfig)>,
    called: &'static str,
    keys: &str,
) -> Vec<String> {
    let (mut far, mut deaf) = (Affected::new(called), Affected::new(called));
    for (name, link) in links {
        let mode = slowest(config, link);
        let Some(snr) = link.snr_over(&mode) else { continue };
        let arrives = |mode: &Mode, bytes| preamble_success(mode, snr) * mpdu_success(mode, snr, bytes);
        let control = link.control_mode.unwrap_or_else(|| config.phy().control_mode(&mode));
        let packet = mpdu_len(config.phy().mac_header_len(), FULL_PACKET);
        let (data, acks) =
            (arrives(&mode, packet), arrives(&control, block_ack_len(config.window_at(&mode))));
        if data < IN_REACH {
            far.add(name, (data, snr, mode));
        } else if acks < DECODABLE {
            deaf.add(name, (acks, snr, control));
        }
    }
    let far = far.text(|who, share, snr, mode| {
        format!(
            "{who} out of reach: at {snr} {share} of full packets arrive at {}: see {keys}, wifi.rate and \
             wifi.rate-control",
            mode.rate()
        )
    });
    let deaf = deaf.text(|who, share, snr, mode| {
        format!(
            "{who} too far for the rate of link-layer ACKs: at {snr} {share} of them arrive at {}: \
                 wifi.ack-rate=auto follows the rate of data",
            mode.rate()
        )
    });
    far.into_iter().chain(deaf).collect()
}

/// The mode of a client's data, or the slowest mode of its rate control.
fn slowest(config: &BssConfig, station: &StationConfig) -> Mode {
    match config.rate_control {
        RateControl::Fixed => station.mode,
        RateControl::Minstrel => {
            let modes =
                station.mode.and_slower(config.standard_at(&station.mode), config.variant).into_iter();
            modes.min_by_key(Mode::rate).unwrap_or(station.mode)
        }
    }
}

/// The links that a warning is about, and the state of the worst one.
struct Affected {
    /// The kind of link.
    called: &'static str,
    names: Vec<String>,
    worst: Option<(f64, Decibels, Mode)>,
}

impl Affected {
    fn new(called: &'static str) -> Self {
        Self { called, names: Vec::new(), worst: None }
    }

    fn add(&mut self, name: String, state: (f64, Decibels, Mode)) {
        self.names.push(name);
        if self.worst.is_none_or(|worst| state.0 < worst.0) {
            self.worst = Some(state);
        }
    }

    /// The result of `tell` with the names, the fraction that arrives, the signal and the mode; `None` if no link is
    /// affected.
    fn text(self, write: impl FnOnce(String, String, Decibels, Mode) -> String) -> Option<String> {
        /// If there are more names, only their number is given.
        const NAMED: usize = 5;
        let (share, snr, mode) = self.worst?;
        let (called, named) = (self.called, &self.names[..self.names.len().min(NAMED)]);
        let more = self.names.len() - named.len();
        let who = match (self.names.len(), more) {
            (1, _) => format!("{called} {} is", named[0]),
            (_, 0) => format!("{called}s {} are", named.join(", ")),
            _ => format!("{called}s {} and {more} more are", named.join(", ")),
        };
        Some(write(who, percent(Some(share), 1), snr, mode))
    }
}

/// Clients without a flow, which the rest of the scenario may have forgotten.
fn of_idle_clients(setup: &Setup) -> Option<String> {
    let hosts = setup.bss.iter().flat_map(|bss| bss.clients.iter().map(|client| client.host));
    let is_idle = |host: &HostId| !setup.flows.iter().any(|flow| flow.source == *host || flow.sink == *host);
    let names: Vec<&str> = hosts.filter(is_idle).map(|host| setup.hosts[host.0 as usize].as_str()).collect();
    (!names.is_empty()).then(|| format!("without a flow: {}", names.join(", ")))
}

/// Warnings about traffic outside the measured interval, one line per kind.
fn of_times(setup: &Setup) -> Vec<String> {
    let mut warnings = Vec::new();
    let flows = count(setup.flows.len() as u64, "flow");
    // Durations are more readable than instants.
    let at = |instant: Instant| instant.saturating_since(Instant::ZERO);
    let from = at(setup.measure_from);
    let late: Vec<_> = setup.flows.iter().map(|flow| at(flow.start)).filter(|start| *start > from).collect();
    if let Some(last) = late.iter().max() {
        warnings.push(format!(
            "{} of {flows} start after measuring began at {from}, the last at {last}: run.measure-from, \
             run.start-spread and start say when",
            late.len()
        ));
    }
    let early = setup.flows.iter().filter(|flow| flow.stop.is_some_and(|stop| at(stop) <= from)).count();
    if early > 0 {
        warnings.push(format!(
            "{early} of {flows} stop before measuring begins at {from}, and count for nothing: see run.measure-from"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme;

    fn warnings_of(scenario: &str, assignments: &[&str], schemes: &[&str]) -> Vec<String> {
        let assignments: Vec<String> = assignments.iter().map(|&text| text.to_owned()).collect();
        let schemes: Vec<&Scheme> = schemes.iter().map(|name| scheme::named("", name).unwrap()).collect();
        of_assignments(scenario, &assignments, &schemes, 2)
    }

    #[test]
    fn settings_that_a_scheme_overrides_are_warned_of() {
        let classic = "hack-2014-11n-150";
        let warnings = warnings_of(classic, &["tcp.ack-every=4"], &["tcp-l8"]);
        let see = "see tacit explain hack-2014-11n-150 tcp.ack-every";
        assert_eq!(warnings, [format!("--set tcp.ack-every=4 changes nothing under tcp-l8: {see}")]);
        let warnings =
            warnings_of(classic, &["tcp.ack-every=4"], &["stock", "tcp-l4", "tcp-l8", "tcp-l16", "udp"]);
        let expected = "--set tcp.ack-every=4 does not count under tcp-l8, tcp-l16, which set it themselves";
        assert_eq!(warnings, [expected]);
        assert_eq!(warnings_of(classic, &["hack.variant=timer"], &["hack-batch"]).len(), 1);
    }

    #[test]
    fn settings_that_the_receiver_ignores_are_warned_of() {
        let warnings = warnings_of("wlan-11n-150", &["tcp.ack-every=4"], &["stock", "hack-more-data"]);
        let see = "see tacit explain wlan-11n-150 tcp.ack-every";
        let expected = format!("--set tcp.ack-every=4 changes nothing under stock, hack-more-data: {see}");
        assert_eq!(warnings, [expected]);
        let here = warnings_of("wlan-11n-150", &["tcp.ack-every=4"], &["as-written"]);
        assert_eq!(here, [format!("--set tcp.ack-every=4 changes nothing here: {see}")]);
    }

    #[test]
    fn effective_settings_are_not_warned_of() {
        let schemes = ["stock", "hack-more-data", "hack-timer", "tcp-l4", "udp"];
        let fine: [&[&str]; 6] = [
            &["tcp.congestion=bbr"],
            &["hack.timer=5 ms"],
            &["wifi.rate=65Mbps", "wifi.mpdu-error=5 %"],
            &["run.seeds=3", "run.duration=8 s", "compare.clients=[7]", "name=other"],
            // Values that apply anyway, and one that a later assignment reverts.
            &["wifi.rate=150Mbps", "tcp.sack=true"],
            &["tcp.ack-policy=delayed", "tcp.ack-every=9", "tcp.ack-every=2"],
        ];
        for assignments in fine {
            assert_eq!(
                warnings_of("wlan-11n-150", assignments, &schemes),
                [] as [&str; 0],
                "{assignments:?}"
            );
        }
        // Errors are reported by the reader instead.
        assert_eq!(warnings_of("wlan-11n-150", &["tcp.ack-evry=4", "tcp.sack"], &schemes), [] as [&str; 0]);
        assert_eq!(
            warnings_of("wired-10", &["tcp.sack=false"], &["udp"]).len(),
            1,
            "UDP alone has no TCP to set"
        );
    }

    #[test]
    fn a_sweep_over_a_key_that_changes_nothing_is_refused() {
        let swept = |sweep: &[&[&str]], schemes: &[&str]| {
            let places: Vec<Vec<String>> =
                sweep.iter().map(|at| at.iter().map(|&text| text.to_owned()).collect()).collect();
            let schemes: Vec<&Scheme> = schemes.iter().map(|name| scheme::named("", name).unwrap()).collect();
            check_sweep("wlan-11n-150", &[], &places, &schemes, &[]).map_err(|error| error.to_string())
        };
        let packets: &[&[&str]] = &[&["tcp.ackfreq-packets=2"], &["tcp.ackfreq-packets=50"]];
        let error = swept(packets, &["stock"]).unwrap_err();
        assert!(error.contains("tcp.ackfreq-packets changes nothing under stock"), "{error}");
        assert!(error.contains("tacit explain wlan-11n-150 tcp.ackfreq-packets"), "{error}");
        assert_eq!(swept(packets, &["stock", "quic-ackfreq"]), Ok(()));
        // In a grid each key is judged along its own axis.
        let grid: &[&[&str]] = &[
            &["tcp.ackfreq-packets=2", "wired.delay=1 ms"],
            &["tcp.ackfreq-packets=2", "wired.delay=9 ms"],
            &["tcp.ackfreq-packets=50", "wired.delay=1 ms"],
            &["tcp.ackfreq-packets=50", "wired.delay=9 ms"],
        ];
        assert!(swept(grid, &["tcp-l4"]).is_err());
        assert_eq!(swept(grid, &["quic-ackfreq"]), Ok(()));
        // One place is no sweep, and times of a run are always compared.
        assert_eq!(swept(&[&["tcp.ackfreq-packets=2"]], &["stock"]), Ok(()));
        assert_eq!(swept(&[&["run.duration=5 s"], &["run.duration=6 s"]], &["stock"]), Ok(()));
    }

    #[test]
    fn flows_outside_the_measured_window_are_counted() {
        let setup =
            |text: &str, clients| Scenario::parse("x.toml", text, &[]).unwrap().setup(clients, 1).unwrap();
        let many = "base = \"wlan-11n-150\"\n";
        assert_eq!(of_times(&setup(many, 41)), [] as [&str; 0], "the last starts when measuring does");
        let late = "base = \"wlan-11n-150\"\n[[client]]\nstart = \"4900 ms\"\n[[client]]\n";
        assert_eq!(
            of_times(&setup(late, 2)),
            [
                "1 of 2 flows start after measuring began at 4s, the last at 4.9s: run.measure-from, run.start-spread and \
              start say when"
            ]
        );
        let refused = Scenario::parse("x.toml", many, &[]).unwrap().setup(50, 1).unwrap_err().to_string();
        assert!(refused.contains("client 42: starts at 4.1s, when results count since 4s"), "{refused}");
        assert!(refused.contains("clients.stagger of 97.56"), "{refused}");
        let all = ["run.measure-from=0 s".to_owned()];
        assert!(Scenario::parse("x.toml", many, &all).unwrap().check(50).is_ok(), "all of the run counts");
        let early = "base = \"wlan-11n-150\"\n[[client]]\nstop = \"4 s\"\n[[client]]\n";
        let [warning] = &of_times(&setup(early, 2))[..] else { panic!("one warning") };
        assert!(warning.starts_with("1 of 2 flows stop before measuring begins at 4s"), "{warning}");
    }

    #[test]
    fn clients_that_cannot_be_reached_or_cannot_be_answered_are_named() {
        let reach_warnings = |set: &[&str]| {
            let set: Vec<String> = set.iter().map(|&text| text.to_owned()).collect();
            of_setup(&Scenario::load("wlan-11ac-866", &set).unwrap().setup(2, 1).unwrap())
        };
        assert_eq!(reach_warnings(&["wifi.distance=5 m"]), [] as [&str; 0]);
        let [far] = &reach_warnings(&["wifi.distance=38 m"])[..] else { panic!("one warning") };
        assert!(far.starts_with("clients 1, 2 are out of reach: at "), "{far}");
        assert_eq!(reach_warnings(&["wifi.distance=38 m", "wifi.rate-control=minstrel"]), [] as [&str; 0]);
        assert_eq!(reach_warnings(&["wifi.distance=38 m", "wifi.rate-control=ideal"]), [] as [&str; 0]);
        let [deaf] =
            &reach_warnings(&["wifi.distance=38 m", "wifi.rate-control=ideal", "wifi.ack-rate=24Mbps"])[..]
        else {
            panic!("one warning")
        };
        assert!(deaf.contains("too far for the rate of link-layer ACKs"), "{deaf}");
        assert!(deaf.contains("at 24Mbps: wifi.ack-rate=auto"), "{deaf}");
    }

    #[test]
    fn a_warning_of_several_clients_shows_the_worst_of_them() {
        for snrs in [["28 dB", "26 dB", "27 dB"], ["26 dB", "27 dB", "28 dB"], ["28 dB", "27 dB", "26 dB"]] {
            let clients: String = snrs.iter().map(|snr| format!("[[client]]\nsnr = {snr:?}\n")).collect();
            let scenario =
                Scenario::parse("x.toml", &format!("base = \"wlan-11ac-866\"\n{clients}"), &[]).unwrap();
            let [far] = &of_setup(&scenario.setup(3, 1).unwrap())[..] else { panic!("one warning") };
            assert!(far.starts_with("clients 1, 2, 3 are out of reach: at 26 dB "), "{snrs:?}: {far}");
        }
    }
}
