//! `[hack]`.

use crate::HackPlan;
use crate::error::InputError;
use crate::input::Section;
use crate::keys::{fill, hack};

pub(super) fn hack_section(section: Section<'_>, has_wifi: bool) -> Result<HackPlan, InputError> {
    if section.is_present() && !has_wifi {
        return Err(section.error("variant", "there is no [wifi]").allowed("[hack] with [wifi]"));
    }
    let mut plan = hack::usual();
    fill(hack::HACK, &section, &mut plan)?;
    section.finish()?;
    Ok(plan)
}
