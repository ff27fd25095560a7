//! `[[client]]`.

use tacit_link::wifi::Position;

use super::queue::queue;
use super::traffic::access_category;
use super::wifi::{ack_mode, data_mode, mpdu_error};
use super::{MAX_CLIENTS, span};
use crate::error::InputError;
use crate::input::{Mismatch, Section, Value, flag, integer, loss};
use crate::scenario::{ClientOverride, Signal, Wifi, signal};

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
    let clients = sections
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
                client.position = section.optional("position", signal::position)?;
                if let (Some(position), None) = (client.position, client.signal) {
                    client.signal = Some(Signal::Distance(position.distance_m(&Position::default())));
                }
                client.hidden_from = section.or("hidden-from", Vec::new(), client_list)?;
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
        .collect::<Result<Vec<_>, InputError>>()?;
    for (number, client) in clients.iter().enumerate() {
        if client.hidden_from.contains(&(number as u32)) {
            return Err(root
                .error("client", format!("client {} is hidden from itself", number + 1))
                .allowed("hidden-from with the numbers of other clients"));
        }
    }
    Ok(clients)
}

/// Numbers of clients, counted from 1 where users write them.
fn client_list(value: &Value) -> Result<Vec<u32>, Mismatch> {
    let wrong = || {
        Mismatch::new(
            format!("{value} is no list of clients"),
            format!("numbers from 1 to {MAX_CLIENTS}, such as [2, 3]"),
        )
    };
    let Value::List(items) = value else { return Err(wrong()) };
    let one = integer(1..=MAX_CLIENTS);
    items.iter().map(|item| one(&item.value).map(|number| number - 1).map_err(|_| wrong())).collect()
}
