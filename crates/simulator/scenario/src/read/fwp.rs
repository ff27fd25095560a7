//! `[fwp]`.

use tacit_between::fwp::Placeholders;
use tacit_link::wifi::StreamQueues;

use crate::Wifi;
use crate::error::InputError;
use crate::fwp::FwpPlan;
use crate::input::Section;
use crate::keys::{fill, fwp};

pub(super) fn fwp_section(section: Section<'_>, wifi: Option<&Wifi>) -> Result<FwpPlan, InputError> {
    if section.is_present() && wifi.is_none() {
        return Err(section.error("repair", "there is no [wifi]").allowed("[fwp] with [wifi]"));
    }
    let mut plan = fwp::usual();
    let queues = wifi.map_or(StreamQueues::Joint, |wifi| wifi.bss.stream_queues);
    if queues == StreamQueues::Independent {
        plan.shim.placeholders = Placeholders::Tcp;
    }
    fill(fwp::FWP, &section, &mut plan)?;
    if (plan.shim.placeholders, queues) == (Placeholders::Driver, StreamQueues::Independent) {
        let what = "a driver sees the gap of a stream only after later segments came by other streams";
        let allowed = "\"tcp\"; or \"driver\" with wifi.stream-queues = \"joint\"";
        return Err(section.error("placeholders", what).allowed(allowed));
    }
    section.finish()?;
    Ok(plan)
}
