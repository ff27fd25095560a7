//! `[hack]`.

use tacit_link::wifi::phy::Standard;

use crate::error::InputError;
use crate::input::Section;
use crate::keys::{Entry, fill, hack};
use crate::{HackPlan, HackRule};

pub(super) fn hack_section(section: Section<'_>, standard: Option<Standard>) -> Result<HackPlan, InputError> {
    if section.is_present() && standard.is_none() {
        return Err(section.error("variant", "there is no [wifi]").allowed("[hack] with [wifi]"));
    }
    let mut plan = hack::usual_of(standard.map_or(HackRule::Every, HackRule::usual_of));
    hack::RULE.fill(&section, &mut plan)?;
    plan.coding = plan.rule.usual_coding();
    fill(hack::HACK, &section, &mut plan)?;
    section.finish()?;
    Ok(plan)
}
