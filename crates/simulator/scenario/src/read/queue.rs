//! Queues: a limit, or a table with a discipline.

use tacit_link::queue::{self, CoDelConfig, DualPi2Config, FqCoDelConfig};
use tacit_link::{QueueConfig, QueueLimit};

use crate::error::InputError;
use crate::input::{Section, Value, queue_limit};
use crate::keys::kind::or;
use crate::keys::queue::{
    DEFAULT_QUEUE, DISCIPLINE, Discipline, ECN, FLOWS, INTERVAL, L4S_THRESHOLD, LIMIT, QUANTUM, RTT_MAX,
    TARGET,
};

/// Limit of Linux's mac80211 (`fq_init`), which there applies to all stations together.
const MAC80211_LIMIT: QueueLimit = QueueLimit { packets: Some(8_192), bytes: None };

/// Limit of RFC 8290 section 5.2.4.
const FQ_CODEL_LIMIT: QueueLimit = QueueLimit { packets: Some(10_240), bytes: None };

/// Location of a queue, which determines the defaults of FQ-CoDel.
#[derive(Clone, Copy)]
pub(super) enum QueueHop {
    /// At a wired or mobile link.
    Wire,
    /// At the MAC of a station.
    Wifi,
}

impl QueueHop {
    fn fq_codel(self) -> (QueueLimit, FqCoDelConfig) {
        match self {
            Self::Wire => (FQ_CODEL_LIMIT, FqCoDelConfig::INTERNET),
            Self::Wifi => (MAC80211_LIMIT, FqCoDelConfig::MAC80211),
        }
    }
}

/// The queue under `key`, if present: `"126 packets"`, or `{ discipline = "fq-codel", ... }`.
pub(super) fn queue(
    section: &Section<'_>,
    key: &'static str,
    place: QueueHop,
) -> Result<Option<QueueConfig>, InputError> {
    let Some(node) = section.node(key) else { return Ok(None) };
    if matches!(node.value, Value::Table(_)) {
        return table(section.section(key)?, place).map(Some);
    }
    let limit = section.optional(key, |value| {
        queue_limit(value).map_err(|mismatch| or(mismatch, "{ discipline = \"fq-codel\" }"))
    })?;
    Ok(limit.map(QueueConfig::from))
}

fn table(section: Section<'_>, place: QueueHop) -> Result<QueueConfig, InputError> {
    let kind = DISCIPLINE.required(&section)?;
    let (fq_limit, fq) = place.fq_codel();
    let (usual_limit, usual) = match kind {
        Discipline::FqCoDel => (fq_limit, fq.codel),
        Discipline::DropTail | Discipline::DropHead | Discipline::CoDel | Discipline::DualPi2 => {
            (DEFAULT_QUEUE, CoDelConfig::INTERNET)
        }
    };
    let limit = LIMIT.or(&section, usual_limit)?;
    let discipline = match kind {
        Discipline::DropTail => queue::Discipline::DropTail,
        Discipline::DropHead => queue::Discipline::DropHead,
        Discipline::CoDel => queue::Discipline::CoDel(codel(&section, usual)?),
        Discipline::FqCoDel => queue::Discipline::FqCoDel(FqCoDelConfig {
            codel: codel(&section, usual)?,
            quantum: QUANTUM.or(&section, fq.quantum)?,
            flows: FLOWS.or(&section, fq.flows.into())?.try_into().expect("the range is within 16 bits"),
        }),
        Discipline::DualPi2 => {
            let usual = DualPi2Config::INTERNET;
            queue::Discipline::DualPi2(DualPi2Config {
                target: TARGET.or(&section, usual.target)?,
                rtt_max: RTT_MAX.or(&section, usual.rtt_max)?,
                l4s_threshold: L4S_THRESHOLD.or(&section, usual.l4s_threshold)?,
                ..usual
            })
        }
    };
    section.finish()?;
    Ok(QueueConfig { limit, discipline })
}

fn codel(section: &Section<'_>, usual: CoDelConfig) -> Result<CoDelConfig, InputError> {
    Ok(CoDelConfig {
        target: TARGET.or(section, usual.target)?,
        interval: INTERVAL.or(section, usual.interval)?,
        ecn: ECN.or(section, usual.ecn)?,
    })
}
