//! Queues: a limit, or a table with a discipline.

use tacit_link::queue::{CoDelConfig, Discipline, FqCoDelConfig};
use tacit_link::{QueueConfig, QueueLimit};
use tacit_proto::units::Duration;

use super::DEFAULT_QUEUE;
use crate::error::InputError;
use crate::input::{Section, Value, duration, flag, integer, one_of, queue_limit, within};

/// What Linux's mac80211 lets wait (`fq_init`), for all stations together there.
const MAC80211_LIMIT: QueueLimit = QueueLimit { packets: Some(8_192), bytes: None };

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    DropTail,
    CoDel,
    FqCoDel,
}

/// The queue under `key`, if there is one: `"126 packets"`, or `{ discipline = "fq-codel", ... }`.
pub(super) fn queue(section: &Section<'_>, key: &'static str) -> Result<Option<QueueConfig>, InputError> {
    let Some(node) = section.node(key) else { return Ok(None) };
    if matches!(node.value, Value::Table(_)) {
        return table(section.section(key)?).map(Some);
    }
    let limit = section.optional(key, |value| {
        queue_limit(value).map_err(|mut mismatch| {
            mismatch.allowed.push_str(", or { discipline = \"fq-codel\" }");
            mismatch
        })
    })?;
    Ok(limit.map(QueueConfig::from))
}

fn table(section: Section<'_>) -> Result<QueueConfig, InputError> {
    let kinds = [("drop-tail", Kind::DropTail), ("codel", Kind::CoDel), ("fq-codel", Kind::FqCoDel)];
    let kind = section.required("discipline", one_of(&kinds))?;
    let (usual_limit, usual) = match kind {
        Kind::DropTail | Kind::CoDel => (DEFAULT_QUEUE, CoDelConfig::INTERNET),
        Kind::FqCoDel => (MAC80211_LIMIT, FqCoDelConfig::MAC80211.codel),
    };
    let limit = section.or("limit", usual_limit, queue_limit)?;
    let discipline = match kind {
        Kind::DropTail => Discipline::DropTail,
        Kind::CoDel => Discipline::CoDel(codel(&section, usual)?),
        Kind::FqCoDel => Discipline::FqCoDel(FqCoDelConfig {
            codel: codel(&section, usual)?,
            quantum: section.or("quantum", FqCoDelConfig::MAC80211.quantum, integer(1..=65_535))?,
            flows: section
                .or("flows", u32::from(FqCoDelConfig::MAC80211.flows), integer(1..=32_768))?
                .try_into()
                .expect("the range is within 16 bits"),
        }),
    };
    section.finish()?;
    Ok(QueueConfig { limit, discipline })
}

fn codel(section: &Section<'_>, usual: CoDelConfig) -> Result<CoDelConfig, InputError> {
    let delay = || within(Duration::from_micros(1)..=Duration::from_secs(10), duration);
    Ok(CoDelConfig {
        target: section.or("target", usual.target, delay())?,
        interval: section.or("interval", usual.interval, delay())?,
        ecn: section.or("ecn", usual.ecn, flag)?,
    })
}
