//! Explains every setting of a scenario: its value, meaning and origin.
//!
//! The set of keys comes from the log of the reader, and their texts from [`keys`](crate::keys).

mod choice;
mod text;
mod ways;

use serde::Serialize;

use super::{Scenario, effective, read};
use crate::error::{InputError, ScenarioError};
use crate::input::{Asked, Log, Node, Value, did_you_mean, unit};
use crate::keys::{self, Row};
use crate::load::load_assigned;
use crate::markdown::to_text;
use crate::scheme::{self, Scheme};
use crate::table::count;

/// One setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setting {
    /// Its key: `wifi.rate`, `client[2].start`.
    pub key: String,
    /// Its value as TOML. If the default is not a value, this is the description of the default.
    pub value: String,
    /// The unit of its value; null if it has none.
    pub unit: Option<String>,
    /// The origin of the value: `default`, a file and line, `--set`, or a scheme.
    pub origin: String,
    /// The default.
    pub default: String,
    /// The allowed values.
    pub allowed: String,
    /// Its meaning.
    pub meaning: String,
}

/// A scenario, setting by setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// Name of the scenario.
    pub scenario: String,
    /// One line about it.
    pub description: String,
    /// The scheme applied to it; null for the scenario as written.
    pub scheme: Option<String>,
    /// The settings, in the order of the documentation page.
    pub settings: Vec<Setting>,
    /// The keys that were requested by their own name, not by that of their table.
    #[serde(skip)]
    pub named: Vec<String>,
    /// Whether FWP, plain Block Ack or TCP/HACK suits the scenario, with reasons. Empty if only some settings were
    /// requested.
    pub choice: Vec<String>,
    /// Which of its ACKs TCP/HACK attaches to link-layer ACKs, and the airtime of each way to send them. Empty if its
    /// clients do not use TCP/HACK, or if settings of other tables were requested.
    pub acks: Vec<String>,
}

/// Explains a scenario, after applying a scheme if one is named. If `keys` is not empty, only these settings and those
/// below them are included.
///
/// # Errors
/// Same as [`Scenario::load`]. Also if the scheme is unknown, or the scenario does not have one of the keys.
pub fn explain(
    name_or_path: &str,
    assignments: &[String],
    scheme: Option<&str>,
    keys: &[String],
) -> Result<Explanation, ScenarioError> {
    let loaded = load_assigned(name_or_path, assignments)?;
    let log = Log::default();
    let scenario = read::logged_scenario(loaded.name, &loaded.source, &loaded.tree, log.clone())?;
    let scheme = scheme.map(|name| scheme::find("--scheme", name)).transpose()?;
    let choice = if keys.is_empty() { choice::criteria(&scenario) } else { Vec::new() };
    let mut settings = only(keys, &log.borrow(), &scenario)?;
    if let Some(scheme) = scheme {
        apply_scheme(scheme, &scenario, &mut settings);
    }
    let tells_of_acks = keys.is_empty() || keys.iter().any(|key| key == "hack" || key.starts_with("hack."));
    let applied = scheme.map_or_else(|| scenario.clone(), |scheme| scheme.applied_to(&scenario));
    let acks = if tells_of_acks { ways::criteria(&applied) } else { Vec::new() };
    Ok(Explanation {
        scenario: scenario.name,
        description: scenario.description,
        scheme: scheme.map(|scheme| scheme.name.to_owned()),
        named: keys.iter().filter(|key| keys::find(key).is_some()).cloned().collect(),
        settings,
        choice,
        acks,
    })
}

/// The settings whose key satisfies `is_wanted`.
fn settings_of(log: &[Asked], scenario: &Scenario, is_wanted: impl Fn(&str) -> bool) -> Vec<Setting> {
    let mut settings: Vec<Setting> = Vec::new();
    for asked in log.iter().filter(|asked| is_wanted(&asked.path)) {
        if is_structure(asked, log) || settings.iter().any(|setting| setting.key == asked.path) {
            continue;
        }
        if asked.found.is_none() && is_said_elsewhere(asked, log, scenario) {
            continue;
        }
        settings.push(Setting::new(asked, scenario));
    }
    let place = |setting: &Setting| {
        let rows = keys::rows();
        let row = keys::find(&setting.key).and_then(|row| rows.iter().position(|known| known == row));
        let table = setting.key.split('.').next().unwrap_or_default().to_owned();
        (row.unwrap_or(rows.len()), table)
    };
    // Sorted by table. The keys of one client or flow stay together.
    settings.sort_by_cached_key(|setting| {
        let (row, table) = place(setting);
        let first = keys::rows().iter().position(|known| table.split('[').next() == Some(known.table));
        (first, table.len(), table, row)
    });
    settings
}

/// True for an absent key that would not add information: keys of a client, flow, hop or direction that inherit their
/// value; the delay of a wire or its round-trip time, where the other is given; keys of TCP/HACK and FWP without Wi-Fi;
/// and keys of a wired or mobile link that does not exist.
fn is_said_elsewhere(asked: &Asked, log: &[Asked], scenario: &Scenario) -> bool {
    let absent = |table: &str| log.iter().any(|asked| asked.path == table && asked.found.is_none());
    let below = |table: &str| asked.path.split('.').next() == Some(table);
    let is_given = |path: &str| log.iter().any(|asked| asked.path == path && asked.found.is_some());
    asked.path.contains('[')
        || asked.path == "wired.rtt"
        || (asked.path == "wired.delay" && is_given("wired.rtt"))
        || asked.path.matches('.').count() > 1
        || ((below("hack") || below("fwp")) && scenario.wifi.is_none())
        || (below("cellular") && absent("cellular"))
        || (below("wired") && absent("wired") && !absent("cellular"))
}

/// True for keys that only contain settings: tables whose keys are read individually, lists of tables, and `base`,
/// which is resolved before reading. If a table is read as a whole, it is the value of its key.
fn is_structure(asked: &Asked, log: &[Asked]) -> bool {
    let holds = !asked.path.contains('.') && keys::find(&asked.path).is_none();
    let is_table = matches!(&asked.found, Some(Node { value: Value::Table(_), .. }));
    let below = |other: &Asked| {
        other.path.strip_prefix(asked.path.as_str()).is_some_and(|rest| rest.starts_with('.'))
    };
    holds || asked.path == "base" || (is_table && log.iter().any(below))
}

impl Setting {
    fn new(asked: &Asked, scenario: &Scenario) -> Self {
        let row = keys::find(&asked.path);
        let default = row.map_or_else(String::new, plain_default);
        let (value, origin) = match (&asked.found, effective::value_of(&asked.path, scenario)) {
            (Some(node), _) => (node.value.to_string(), origin_text(&node.origin.to_string())),
            (None, Some((value, from))) => {
                let is_usual = value == default || (default.is_empty() && value == "none");
                (value, if is_usual { "default" } else { from }.to_owned())
            }
            (None, None) if default.is_empty() => ("none".to_owned(), "default".to_owned()),
            (None, None) => (default.clone(), "default".to_owned()),
        };
        Self {
            key: asked.path.clone(),
            unit: unit_of(&asked.path, &value),
            value,
            origin,
            default,
            allowed: row.map_or_else(String::new, |row| to_text(&row.allowed)),
            meaning: row.map_or_else(String::new, |row| to_text(row.meaning)),
        }
    }
}

/// The default as text. Literal defaults are TOML and left unchanged.
fn plain_default(row: &Row) -> String {
    if row.literal { row.default.clone() } else { to_text(&row.default) }
}

/// Shortens `--set wifi.rate` to `--set`, because the key is shown anyway.
fn origin_text(origin: &str) -> String {
    if origin.starts_with("--set ") { "--set".to_owned() } else { origin.to_owned() }
}

/// The unit in a value such as `"14 s"`. Names and descriptions have no unit, even if they look as if they had.
fn unit_of(key: &str, value: &str) -> Option<String> {
    let is_words = matches!(key.rsplit('.').next(), Some("name" | "description"));
    let text = value.strip_prefix('"')?.strip_suffix('"')?;
    unit(text).filter(|_| !is_words).map(str::to_owned)
}

fn apply_scheme(scheme: &Scheme, scenario: &Scenario, settings: &mut [Setting]) {
    let changed = scheme.applied_to(scenario);
    // Where only some clients use the scheme, their values.
    let (changed, adopters_note) = match (changed.adopted(), &changed.adoption) {
        (Some(adopted), Some(adoption)) => {
            (adopted, format!(", of {}", count(adoption.adopters.into(), "client")))
        }
        _ => (&changed, String::new()),
    };
    for setting in settings {
        let before = effective::value_of(&setting.key, scenario);
        let after = effective::value_of(&setting.key, changed);
        if let Some((value, _)) = after.filter(|(after, _)| before.is_none_or(|(before, _)| before != *after))
        {
            setting.value = value;
            setting.unit = unit_of(&setting.key, &setting.value);
            setting.origin = format!("scheme {}{adopters_note}", scheme.name);
        }
    }
}

/// The settings that `keys` select; all if `keys` is empty.
fn only(keys: &[String], log: &[Asked], scenario: &Scenario) -> Result<Vec<Setting>, InputError> {
    let below = |setting: &str, key: &String| {
        let rest = setting.strip_prefix(key.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let is_named = |setting: &str| keys.is_empty() || keys.iter().any(|key| below(setting, key));
    let settings = settings_of(log, scenario, is_named);
    if let Some(key) = keys.iter().find(|key| !settings.iter().any(|setting| below(&setting.key, key))) {
        return Err(without(key, &settings_of(log, scenario, |_| true)));
    }
    Ok(settings)
}

/// The error for a `key` that is neither in `settings` nor a table of them.
fn without(key: &str, settings: &[Setting]) -> InputError {
    let table = key.split(['.', '[']).next().unwrap_or(key);
    let row = keys::find(key);
    let whole = row.map(|row| format!("{}.{}", row.table, row.name));
    if let (Some(row), Some(whole)) =
        (row, whole.filter(|whole| settings.iter().any(|known| known.key == *whole)))
    {
        let what = format!("not said apart from the whole: see {whole}");
        return InputError::new(key, what).allowed(to_text(&row.allowed));
    }
    let is_there = |known: &Setting| known.key.split(['.', '[']).next() == Some(table);
    let is_table = keys::is_table(table) && (row.is_some() || key == table);
    if is_table && !settings.iter().any(is_there) {
        let what = format!("the scenario has no {}", keys::header(table));
        return InputError::new(key, what).allowed("tables that the scenario has, and their keys");
    }
    let known = settings.iter().map(|setting| setting.key.as_str());
    let hint = did_you_mean(key, known);
    InputError::new(key, format!("the scenario has no such setting{hint}"))
        .allowed("keys as in --set, or the name of a table")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A scenario for which the reader requests every key.
    const EVERYTHING: &str = "base = \"wlan-11n-150\"\n[wifi]\nap-queue = { discipline = \"fq-codel\" }\n\
                              station-queue = { discipline = \"dualpi2\" }\n\
                              mpdu-error = { down = \"1 %\" }\n[[client]]\n[[flow]]\n\
                              [[hop]]\nkind = \"wired\"\njitter = { spread = \"1 ms\" }\n";

    fn asked(text: &str) -> Vec<Asked> {
        let tree =
            crate::load::with_base("t.toml", None, crate::input::Tree::parse("t.toml", text).unwrap(), 0);
        let log = Log::default();
        read::logged_scenario("t".into(), "t.toml", &tree.unwrap(), log.clone()).unwrap();
        let log = log.take();
        log.iter().filter(|asked| !is_structure(asked, &log) || asked.path.contains('.')).cloned().collect()
    }

    #[test]
    fn every_key_is_described_and_every_described_key_is_read() {
        let mut described: BTreeSet<(&str, &str)> = BTreeSet::new();
        for key in asked(EVERYTHING) {
            let Some(row) = keys::find(&key.path) else { panic!("{} is read and not described", key.path) };
            described.insert((row.table, row.name));
        }
        for row in keys::rows() {
            let known = described.contains(&(row.table, row.name));
            let is_base = row.table.is_empty() && row.name == "base";
            assert!(known || is_base, "{} of {:?} is described and not read", row.name, row.table);
        }
    }

    /// `scenario` with the text and invocation of `other`.
    fn like(scenario: Scenario, other: &Scenario) -> Scenario {
        Scenario { text: other.text.clone(), invocation: other.invocation.clone(), ..scenario }
    }

    #[test]
    fn a_wire_is_explained_by_its_delay_or_its_round_trip() {
        let keys_of = |scenario: &str| -> Vec<String> {
            let explained = explain(scenario, &[], None, &["wired".to_owned()]).unwrap();
            explained.settings.into_iter().map(|setting| setting.key).collect()
        };
        let has =
            |keys: &[String]| ["wired.delay", "wired.rtt"].map(|key| keys.iter().any(|known| known == key));
        assert_eq!(has(&keys_of("wlan-11n-150")), [true, false]);
        assert_eq!(has(&keys_of("home-wifi6")), [false, true]);
    }

    #[test]
    fn written_out_defaults_change_nothing() {
        // Some keys exist only in some standards.
        let texts = ["base = \"hack-2014-11n-150\"\n", "[wifi]\nstandard = \"802.11g\"\nrate = \"54Mbps\"\n"];
        let mut checked = BTreeSet::new();
        let mut refused = BTreeSet::new();
        for text in texts {
            let base = Scenario::parse("t.toml", text, &[]).unwrap();
            let log = asked(text);
            // The other keys of a mobile link need its traces to be set first.
            let plain = |key: &&Asked| {
                key.found.is_none()
                    && !is_said_elsewhere(key, &log, &base)
                    && !key.path.starts_with("cellular")
            };
            for key in log.iter().filter(plain).cloned() {
                let Some(row) = keys::find(&key.path).filter(|row| row.literal) else { continue };
                let assignment = format!("{}={}", key.path, row.default);
                match Scenario::parse("t.toml", text, std::slice::from_ref(&assignment)) {
                    Ok(same) => {
                        assert_eq!(like(same, &base), base, "{assignment}");
                        checked.insert(key.path);
                    }
                    Err(_) => drop(refused.insert(key.path)),
                }
            }
        }
        assert_eq!(refused.difference(&checked).collect::<Vec<_>>(), [] as [&String; 0]);
        let checked = checked.len();
        assert!(checked > 40, "{checked} defaults");
    }

    /// Scenarios in which defaults depend on other settings, in addition to the bundled ones.
    const DEPENDENT: [&str; 9] = [
        "[wifi]\nstandard = \"802.11b\"\nrate = \"11Mbps\"\n",
        "[wifi]\nstandard = \"802.11g\"\nrate = \"54Mbps\"\nb-stations = true\n",
        "[wifi]\nstandard = \"802.11g\"\nrate = \"54Mbps\"\nrts-threshold = \"500 B\"\n",
        "[wifi]\nstandard = \"802.11n\"\nmcs = 9\nguard-interval = \"long\"\npath-loss = \"friis\"\n",
        "[wifi]\nstandard = \"802.11ac\"\nrate = \"ideal\"\nsnr = \"20 dB\"\nbeacons = false\n",
        "[wifi]\nstandard = \"802.11ax\"\nrate = \"ideal\"\nsnr = \"20 dB\"\nltf = \"4x\"\n",
        "[run]\nduration = \"2 s\"\n[[client]]\n[[client]]\n[tcp]\nreceive-buffer = \"auto\"\n",
        "[cellular]\ndown-trace = \"lte-synthetic.down\"\nup-trace = \"lte-synthetic.up\"\n",
        "[[hop]]\nkind = \"wired\"\n[tcp]\nip = \"v6\"\nack-policy = \"linux\"\n",
    ];

    #[test]
    fn an_explained_value_written_out_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let files = DEPENDENT.iter().zip(1..).map(|(text, number)| {
            let path = directory.path().join(format!("{number}.toml"));
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        });
        let scenarios: Vec<String> = super::super::library::names().map(str::to_owned).chain(files).collect();
        for scenario in scenarios {
            for (profile, _) in keys::tcp::PROFILE.kind.0 {
                let mut assignments = vec![format!("tcp.profile={profile}")];
                let base = Scenario::load(&scenario, &assignments).unwrap();
                assignments.push(String::new());
                for setting in explain(&scenario, &assignments[..1], None, &[]).unwrap().settings {
                    // A given value is already in the file. Words such as `none` are not values.
                    let is_given = setting.origin.contains(".toml:") || setting.origin == "--set";
                    let document = format!("v = {}", setting.value);
                    if is_given || crate::input::Tree::parse("t", &document).is_err() {
                        continue;
                    }
                    assignments[1] = format!("{}={}", setting.key, setting.value);
                    let mut same = Scenario::load(&scenario, &assignments).unwrap_or_else(|error| {
                        panic!("{scenario} with {assignments:?}: {error}");
                    });
                    if setting.key == "clients.count" {
                        // A comparison runs a count that is given, and only that.
                        assert_eq!(same.compare.clients, [base.clients]);
                        same.compare = base.compare.clone();
                    }
                    assert_eq!(like(same, &base), base, "{scenario} with {assignments:?}");
                }
            }
        }
    }

    #[test]
    fn every_key_of_tcp_is_explained_by_its_value() {
        // The options of an ACK policy belong to the policy under every profile.
        let knobs = ["ack-delay", "quick-acks", "gro-flush"];
        for key in asked("[tcp]\n").into_iter().map(|asked| asked.path) {
            let Some(name) = key.strip_prefix("tcp.") else { continue };
            let is_fixed = name == "profile" || name.starts_with("ackfreq-") || knobs.contains(&name);
            let is_effective =
                effective::value_of(&key, &Scenario::parse("t.toml", "[tcp]\n", &[]).unwrap()).is_some();
            assert!(is_fixed || is_effective, "add {key} to effective.rs");
        }
    }

    #[test]
    fn a_default_that_follows_from_another_setting_names_it() {
        let explained = |assignments: &[&str]| {
            let assignments: Vec<String> = assignments.iter().map(|&text| text.to_owned()).collect();
            let settings = explain("wlan-11n-150", &assignments, None, &[]).unwrap().settings;
            move |key: &str| {
                let setting = settings.iter().find(|setting| setting.key == key).unwrap();
                format!("{} from {}", setting.value, setting.origin)
            }
        };
        let linux = explained(&["tcp.profile=linux", "tcp.undo=eifel"]);
        assert_eq!(linux("tcp.loss-detection"), "\"rack-tlp\" from tcp.profile");
        assert_eq!(linux("tcp.byte-counting-limit"), "\"none\" from tcp.profile");
        assert_eq!(linux("tcp.receive-buffer"), "\"auto\" from tcp.profile");
        assert_eq!(linux("tcp.receive-buffer-max"), "\"6 MiB\" from tcp.receive-buffer");
        assert_eq!(linux("tcp.undo"), "\"eifel\" from --set");
        assert_eq!(linux("tcp.send-buffer"), "\"4 MiB\" from default");
        assert_eq!(linux("wifi.slot"), "none from wifi.standard");
        assert_eq!(linux("wifi.streams"), "1 from wifi.rate");
        let mixed = explained(&["wifi.standard=802.11g", "wifi.rate=54Mbps", "wifi.b-stations=true"]);
        assert_eq!(mixed("wifi.slot"), "\"long\" from wifi.b-stations");
        assert_eq!(mixed("wifi.protection"), "\"cts-to-self\" from wifi.b-stations");
    }

    #[test]
    fn a_default_of_tcp_is_written_as_the_keys_have_it() {
        let classic = ["tcp.profile=classic".to_owned()];
        let settings = explain("wired-10", &classic, None, &["tcp".to_owned()]).unwrap().settings;
        for setting in settings.iter().filter(|setting| setting.key != "tcp.receive-buffer-max") {
            assert_eq!(setting.value, setting.default, "{}", setting.key);
        }
    }

    #[test]
    fn changes_by_a_scheme_are_explained() {
        let base = Scenario::load("wlan-11n-150", &[]).unwrap();
        for scheme in scheme::ALL {
            let explanation = explain("wlan-11n-150", &[], Some(scheme.name), &[]).unwrap();
            let changed = explanation.settings.iter().filter(|setting| setting.origin.starts_with("scheme"));
            let assignments: Vec<String> =
                changed.map(|setting| format!("{}={}", setting.key, setting.value)).collect();
            let same = Scenario::load("wlan-11n-150", &assignments).unwrap();
            assert_eq!(
                like(same, &base),
                scheme.applied_to(&base),
                "scheme {} changes more than {assignments:?}: add its keys to effective.rs",
                scheme.name
            );
        }
    }

    #[test]
    fn origins_are_files_lines_arguments_and_schemes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine.toml");
        let text =
            "base = \"wlan-11n-150\"\n\n[tcp]\nsack = false\n[[client]]\n[[client]]\nstart = \"2 s\"\n";
        std::fs::write(&path, text).unwrap();
        let path = path.to_str().unwrap();
        let assignments = ["wifi.retry-limit=3".to_owned()];
        let explanation = explain(path, &assignments, Some("tcp-l4"), &[]).unwrap();
        let setting_of = |key: &str| {
            let setting = explanation.settings.iter().find(|setting| setting.key == key).unwrap();
            (setting.value.as_str(), setting.origin.as_str())
        };
        assert_eq!(setting_of("tcp.sack"), ("false", &*format!("{path}:4")));
        assert_eq!(setting_of("client[2].start"), ("\"2 s\"", &*format!("{path}:7")));
        assert_eq!(setting_of("wifi.retry-limit"), ("3", "--set"));
        assert_eq!(setting_of("tcp.ack-every"), ("4", "scheme tcp-l4"));
        assert_eq!(setting_of("tcp.rto-min"), ("\"200 ms\"", "default"));
        assert_eq!(setting_of("traffic.udp-rate"), ("\"saturating\"", "default"));
        let (rate, origin) = setting_of("wifi.rate");
        assert_eq!((rate, origin.split(':').next().unwrap()), ("\"150Mbps\"", "scenarios/wlan-11n-150.toml"));
        let setting = explanation.settings.iter().find(|setting| setting.key == "tcp.rto-min").unwrap();
        assert_eq!(setting.unit.as_deref(), Some("ms"));
    }

    #[test]
    fn only_quantities_have_a_unit() {
        let assignments =
            ["description=5 s", "wifi.standard=802.11ac", "wifi.snr=-3 dB", "wifi.amsdu=3839 B"];
        let assignments = assignments.map(str::to_owned);
        let settings = explain("hack-2014-11n-150", &assignments, None, &[]).unwrap().settings;
        let unit_of_key =
            |key: &str| settings.iter().find(|setting| setting.key == key).unwrap().unit.as_deref();
        let none =
            ["description", "wifi.standard", "wifi.retry-limit", "tcp.receive-buffer-max", "wired.loss"];
        assert_eq!(none.map(unit_of_key), [None; 5]);
        let some = ["wifi.snr", "wifi.amsdu", "wifi.ap-queue", "wifi.channel-width", "wired.rate"];
        assert_eq!(some.map(unit_of_key), ["dB", "B", "packets", "MHz", "Mbps"].map(Some));
    }

    #[test]
    fn one_key_or_one_table_can_be_asked_for() {
        let keys = |keys: &[&str]| {
            let keys: Vec<String> = keys.iter().map(|&key| key.into()).collect();
            explain("wired-10", &[], None, &keys).map(|explanation| explanation.settings.len())
        };
        assert_eq!(keys(&["tcp.sack"]).unwrap(), 1);
        assert_eq!(keys(&["clients", "tcp.sack"]).unwrap(), 4);
        let error = |key: &str| keys(&[key]).unwrap_err().to_string();
        assert!(error("tcp.sak").contains("did you mean \"tcp.sack\"?"), "{}", error("tcp.sak"));
        assert!(error("wires").contains("no such setting"), "{}", error("wires"));
        for table in ["client", "flow", "hop", "client[1].start"] {
            let head = table.split('[').next().unwrap();
            assert!(
                error(table).starts_with(&format!("{table}: the scenario has no [[{head}]]")),
                "{}",
                error(table)
            );
        }
        assert!(error("cellular.down-trace").contains("the scenario has no [cellular]"));
        assert!(
            error("wired.down.rate").contains("see wired.rate; allowed: a rate"),
            "{}",
            error("wired.down.rate")
        );
        assert!(error("wired.reorder.chance").contains("see wired.reorder; allowed: { chance"));
    }

    /// Without an explicit description, the allowed values are shown for a table that takes the place of a value.
    #[test]
    fn named_keys_come_with_their_allowed_values() {
        let text = |keys: &[&str]| {
            let keys: Vec<String> = keys.iter().map(|&key| key.into()).collect();
            explain("wlan-11n-150", &[], None, &keys).unwrap().to_text(None)
        };
        assert!(text(&["wired.reorder"]).ends_with(
            "\nallowed for wired.reorder: { chance = \"1 %\", packets = 3, delay = \"10 ms\" }\n"
        ));
        assert!(text(&["tcp", "wifi.cw-min"]).contains("\nallowed for wifi.cw-min: 0, 1, 3, 7"));
        assert!(!text(&["wired"]).contains("allowed for"));
    }
}
