//! `[tack]`.

use crate::error::InputError;
use crate::input::Section;
use crate::keys::{fill, tack as keys};
use crate::tack::TackPlan;

pub(super) fn tack_section(section: Section<'_>) -> Result<TackPlan, InputError> {
    let mut plan = keys::usual();
    fill(keys::TACK, &section, &mut plan)?;
    let (first, most) = (plan.config.receive_buffer, plan.config.max_receive_buffer);
    if first > most {
        let key =
            if section.has(keys::RECEIVE_BUFFER) { keys::RECEIVE_BUFFER } else { keys::RECEIVE_BUFFER_MAX };
        return Err(section
            .error(key, format!("{most} is below receive-buffer, {first}"))
            .allowed("receive-buffer up to receive-buffer-max"));
    }
    section.finish()?;
    Ok(plan)
}
