//! Describes every key of a scenario once: its name, its type with unit and limits, its default and its meaning.
//!
//! The reader takes types, limits and messages from here; `tacit explain` and `docs/use/scenario.md` take their texts.
//! There are three kinds of keys. A [`Field`] sets one field of the simulator's configuration and knows where the value
//! is stored, so no other code needs to handle it. A [`Key`] is evaluated together with others in `read`. A [`TextKey`]
//! is a table, or a key whose type depends on others.

pub(crate) mod clients;
pub(crate) mod edca;
mod entry;
pub(crate) mod fwp;
pub(crate) mod hack;
pub(crate) mod kind;
pub(crate) mod links;
pub(crate) mod multi_link;
#[cfg(test)]
mod page;
pub(crate) mod queue;
pub(crate) mod run;
pub(crate) mod tack;
pub(crate) mod tcp;
pub(crate) mod traffic;
pub(crate) mod wifi;

use std::sync::OnceLock;

use crate::Scenario;
use entry::{rows_of, value_in};

pub(crate) use entry::{Entry, Key, Row, fill};

/// Name of the table that describes queues given as tables.
const QUEUE_TABLE: &str = "queue";
/// Name of the table of what several links have in common.
const MULTI_LINK_TABLE: &str = "wifi.multi-link";

/// Every key, grouped by table in the order of the documentation page.
pub(crate) fn rows() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    ROWS.get_or_init(|| {
        [
            rows_of("", run::TOP, &()),
            rows_of("run", run::RUN, &run::usual()),
            rows_of("wifi", wifi::WIFI, &wifi::usual()),
            rows_of("wifi", multi_link::IN_WIFI, &()),
            rows_of(MULTI_LINK_TABLE, multi_link::MULTI_LINK, &crate::MultiLinkPlan::default()),
            rows_of(QUEUE_TABLE, queue::QUEUE, &()),
            rows_of("hack", hack::HACK, &hack::usual()),
            rows_of("fwp", fwp::FWP, &fwp::usual()),
            rows_of("wired", links::WIRED, &links::usual_wire()),
            rows_of("wired", links::COMMON, &links::usual_wire()),
            rows_of("cellular", links::CELLULAR, &links::usual_cellular()),
            rows_of("cellular", links::COMMON, &links::usual_cellular()),
            rows_of("hop", links::HOP, &()),
            rows_of("clients", run::CLIENTS, &()),
            rows_of("client", clients::CLIENT, &crate::ClientOverride::default()),
            rows_of("client", clients::WIRELESS, &crate::ClientOverride::default()),
            rows_of("traffic", traffic::TRAFFIC, &traffic::usual()),
            rows_of("flow", traffic::FLOW, &()),
            rows_of("tcp", tcp::TCP, &tacit_tcp::Config::default()),
            rows_of("tack", tack::TACK, &tack::usual()),
            rows_of("compare", run::COMPARE, &()),
        ]
        .concat()
    })
}

/// The value of the field that `path` names, such as `wifi.rate`; `None` for keys that are not a field of one of the
/// tables below.
pub(crate) fn value(path: &str, scenario: &Scenario) -> Option<String> {
    let (table, name) = path.split_once('.')?;
    match table {
        "run" => value_in(run::RUN, name, &scenario.run),
        "wifi" => value_in(wifi::WIFI, name, scenario.wifi.as_ref()?),
        "hack" => value_in(hack::HACK, name, &scenario.hack),
        "fwp" => value_in(fwp::FWP, name, &scenario.fwp),
        "traffic" => value_in(traffic::TRAFFIC, name, &scenario.traffic),
        "tcp" => value_in(tcp::TCP, name, &scenario.tcp),
        "tack" => value_in(tack::TACK, name, &scenario.tack),
        _ => None,
    }
}

/// Tables that a scenario may have several of.
const LISTS: [&str; 3] = ["client", "flow", "hop"];

/// Whether a scenario may have a table of this name.
pub(crate) fn is_table(name: &str) -> bool {
    !matches!(name, "" | QUEUE_TABLE) && rows().iter().any(|row| row.table == name)
}

/// The header of the table `name` in TOML.
pub(crate) fn header(name: &str) -> String {
    if LISTS.contains(&name) { format!("[[{name}]]") } else { format!("[{name}]") }
}

/// The row that describes `path`, such as `wifi.rate` or `client[2].rate`. Keys of `[[flow]]` and `[[hop]]` without a
/// description of their own are described in the tables they override. `down` and `up` of a link have the keys of the
/// link. Any other table in place of a value has its own table of keys, or is described by the value.
pub(crate) fn find(path: &str) -> Option<&'static Row> {
    let parts: Vec<&str> = path.split('.').collect();
    let (table, key) = match parts[..] {
        [key] => ("", key),
        [_, queue, key] if queue == "queue" || queue.ends_with("-queue") => (QUEUE_TABLE, key),
        ["wifi", multi_link::TABLE, key, ..] => (MULTI_LINK_TABLE, key),
        ["wifi", link, key, ..] if link.starts_with("link[") => ("wifi", key),
        [table, "down" | "up", key, ..] | [table, key, ..] => (table.split('[').next().unwrap_or(table), key),
        [] => return None,
    };
    let others: &[&str] = match table {
        "flow" => &["traffic"],
        "hop" => &["wired", "cellular"],
        _ => &[],
    };
    let in_table = |table: &str| rows().iter().find(|row| row.table == table && row.name == key);
    std::iter::once(table).chain(others.iter().copied()).find_map(in_table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_described_twice_and_each_says_what_it_means() {
        let mut keys: Vec<(&str, &str)> = rows().iter().map(|row| (row.table, row.name)).collect();
        keys.sort_unstable();
        let twice: Vec<_> = keys.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert_eq!(twice, [] as [&[(&str, &str)]; 0]);
        for row in rows() {
            assert!(!row.meaning.is_empty() && !row.allowed.is_empty(), "{}.{}", row.table, row.name);
        }
    }
}
