//! `[fwp]`.

use crate::error::InputError;
use crate::fwp::FwpPlan;
use crate::input::Section;
use crate::keys::{fill, fwp};

pub(super) fn fwp_section(section: Section<'_>, has_wifi: bool) -> Result<FwpPlan, InputError> {
    if section.is_present() && !has_wifi {
        return Err(section.error("repair", "there is no [wifi]").allowed("[fwp] beside [wifi]"));
    }
    let mut plan = fwp::usual();
    fill(fwp::FWP, &section, &mut plan)?;
    section.finish()?;
    Ok(plan)
}
