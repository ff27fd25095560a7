//! Selects PPDUs: the start of a time line, and those that claims count.

use tacit_link::wifi::StationId;
use tacit_packet::units::{Duration, Instant};

use tacit_runs::air::{Kind, Ppdu};
use tacit_scenario::InputError;
use tacit_scenario::input::{Section, duration, flag, one_of};

/// Whether MPDUs of a PPDU were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    None,
    Part,
    Whole,
}

/// Conditions on a PPDU. Absent conditions always hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    kind: Option<Kind>,
    from_ap: Option<bool>,
    lost: Option<Lost>,
    sync: Option<bool>,
    more_data: Option<bool>,
    retry: Option<bool>,
    appended: Option<bool>,
    again: Option<bool>,
    after: Duration,
}

impl Selector {
    /// Reads all keys. `kind_key` is the name of the key with the kind.
    pub fn read(section: &Section<'_>, kind_key: &'static str) -> Result<Self, InputError> {
        let losses = [("none", Lost::None), ("part", Lost::Part), ("whole", Lost::Whole)];
        Ok(Self {
            kind: section.optional(kind_key, one_of(&Kind::NAMES))?,
            from_ap: section.optional("from", one_of(&[("ap", true), ("client", false)]))?,
            lost: section.optional("lost", one_of(&losses))?,
            sync: section.optional("sync", flag)?,
            more_data: section.optional("more-data", flag)?,
            retry: section.optional("retry", flag)?,
            appended: section.optional("appended", flag)?,
            again: section.optional("again", flag)?,
            after: section.or("after", Duration::ZERO, duration)?,
        })
    }

    pub fn matches(&self, ppdu: &Ppdu) -> bool {
        let lost = match ppdu.lost() {
            0 => Lost::None,
            all if all == ppdu.arrived.len() => Lost::Whole,
            _ => Lost::Part,
        };
        wanted(self.kind, ppdu.kind)
            && wanted(self.from_ap, ppdu.transmitter == StationId::AP)
            && wanted(self.lost, lost)
            && wanted(self.sync, ppdu.sync)
            && wanted(self.more_data, ppdu.more_data)
            && wanted(self.retry, ppdu.retries > 0)
            && wanted(self.appended, ppdu.appended > 0)
            && wanted(self.again, ppdu.again)
            && ppdu.at >= Instant::ZERO + self.after
    }
}

fn wanted<T: PartialEq + Copy>(wanted: Option<T>, is: T) -> bool {
    wanted.is_none_or(|wanted| wanted == is)
}
