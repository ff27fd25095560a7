//! `[[client]]`.

use super::queue::queue;
use super::traffic::access_category;
use super::wifi::{ack_mode, data_mode, mpdu_error};
use super::{MAX_CLIENTS, span};
use crate::error::InputError;
use crate::input::{Section, flag, loss};
use crate::scenario::{ClientOverride, Wifi, signal};

pub(super) fn client_overrides(
    root: &Section<'_>,
    wifi: Option<&Wifi>,
) -> Result<Vec<ClientOverride>, InputError> {
    let sections = root.sections("client")?;
    if sections.len() > MAX_CLIENTS as usize {
        return Err(root
            .error("client", format!("{} clients", sections.len()))
            .allowed(format!("at most {MAX_CLIENTS}")));
    }
    sections
        .into_iter()
        .map(|section| {
            let mut client = ClientOverride {
                start: section.optional("start", span)?,
                stop: section.optional("stop", span)?,
                ..ClientOverride::default()
            };
            if let Some(wifi) = wifi {
                client.mode = data_mode(&section, wifi.standard, wifi.variant)?;
                client.ack_mode = section.or("ack-rate", None, ack_mode(wifi.standard, wifi.variant))?;
                client.mpdu_error = mpdu_error(&section)?;
                client.link_ack_error = section.optional("link-ack-error", loss)?;
                client.signal = signal::signal(&section)?;
                client.access_category = access_category(&section, Some(wifi))?;
                client.hack = section.optional("hack", flag)?;
                client.leave = section.optional("leave", span)?;
                client.back = section.optional("back", span)?;
                if client.back.is_some() && client.leave.is_none_or(|leave| client.back <= Some(leave)) {
                    return Err(section
                        .error("back", "comes back without having left")
                        .allowed("leave before back"));
                }
                client.ap_queue = queue(&section, "ap-queue")?;
                client.station_queue = queue(&section, "station-queue")?;
            }
            section.finish()?;
            Ok(client)
        })
        .collect()
}
