//! `[[client]]`.

use tacit_link::wifi::{LinkAcks, LinkId, LinkSet, Position};

use super::queue::{QueueHop, queue};
use super::signal::signal;
use super::traffic::access_category;
use super::wifi::{ack_mode, check_client_acks, check_edca, client_mode, mpdu_error};
use crate::error::InputError;
use crate::input::Section;
use crate::keys::multi_link::{CLIENT_LINKS, CLIENT_MODE, MAX_LINKS};
use crate::keys::wifi::{ACK_RATE, AP_QUEUE, DISTANCE, LINK_ACK_ERROR, LINK_ACKS, RATE, SNR, STATION_QUEUE};
use crate::keys::{clients as keys, fill};
use crate::{ClientOverride, MAX_CLIENTS, Signal, Wifi};

pub(super) fn client_overrides(
    root: &Section<'_>,
    wifi: Option<&Wifi>,
) -> Result<Vec<ClientOverride>, InputError> {
    let sections = root.sections("client")?;
    let tables = sections
        .into_iter()
        .map(|section| {
            let mut client = ClientOverride::default();
            fill(keys::CLIENT, &section, &mut client)?;
            let count = keys::COUNT.or(&section, 1)?;
            if let Some(wifi) = wifi {
                wireless(&section, wifi, &mut client)?;
            }
            section.finish()?;
            Ok((client, count))
        })
        .collect::<Result<Vec<_>, InputError>>()?;
    let total: u64 = tables.iter().map(|(_, count)| u64::from(*count)).sum();
    if total > u64::from(MAX_CLIENTS) {
        return Err(root
            .error("client", format!("{total} clients"))
            .allowed(format!("at most {MAX_CLIENTS}")));
    }
    let repeated = |(client, count)| std::iter::repeat_n(client, count as usize);
    let clients: Vec<ClientOverride> = tables.into_iter().flat_map(repeated).collect();
    for (number, client) in clients.iter().enumerate() {
        if client.hidden_from.contains(&(number as u32)) {
            return Err(root
                .error("client", format!("client {} is hidden from itself", number + 1))
                .allowed("hidden-from with the numbers of other clients"));
        }
    }
    Ok(clients)
}

/// Refuses links that are not there, and what a client of several links cannot have for itself.
fn check_links(section: &Section<'_>, wifi: &Wifi, client: &ClientOverride) -> Result<(), InputError> {
    let Some(plan) = &wifi.multi_link else {
        let given =
            [(client.links.is_some(), CLIENT_LINKS.name), (client.link_use.is_some(), CLIENT_MODE.name)];
        return match given.into_iter().find(|(is_given, _)| *is_given) {
            None => Ok(()),
            Some((_, key)) => Err(section.error(key, "there is one link").allowed("with [[wifi.link]]")),
        };
    };
    let count = plan.further.len() as u8 + 1;
    let links = client.links.unwrap_or(LinkSet::ALL);
    if client.links.is_some() && (count..MAX_LINKS as u8).any(|link| links.contains(LinkId(link))) {
        return Err(section.error(CLIENT_LINKS.name, "no such link").allowed(format!("1 to {count}")));
    }
    let link_settings = [
        (client.mode.is_some(), RATE.name),
        (client.ack_mode.is_some(), ACK_RATE.name),
        (section.has(SNR.name), SNR.name),
        (section.has(DISTANCE.name), DISTANCE.name),
    ];
    if let Some((_, key)) = link_settings.into_iter().find(|(is_own, _)| *is_own) {
        return Err(section.error(key, "is a setting of a link").allowed("in [[wifi.link]]"));
    }
    let of_one_link = [
        (!client.hidden_from.is_empty(), "hidden-from"),
        (client.position.is_some(), "position"),
        (client.link_acks.is_some_and(|acks| !acks.are(LinkAcks::Normal)), LINK_ACKS),
    ];
    match of_one_link.into_iter().find(|(is_set, _)| *is_set) {
        Some((_, key)) => Err(section.error(key, "is for one link").allowed("without [[wifi.link]]")),
        None => Ok(()),
    }
}

/// Reads the keys of a client on Wi-Fi.
fn wireless(section: &Section<'_>, wifi: &Wifi, client: &mut ClientOverride) -> Result<(), InputError> {
    fill(keys::WIRELESS, section, client)?;
    let (standard, variant) = (wifi.bss.standard, wifi.bss.variant);
    client.mode = client_mode(section, wifi)?;
    client.ack_mode = section.or(ACK_RATE.name, None, ack_mode(standard, variant))?;
    client.mpdu_error = mpdu_error(section)?;
    client.link_ack_error = LINK_ACK_ERROR.given(section)?;
    client.signal = signal(section)?;
    if let (Some(position), None) = (client.position, client.signal) {
        client.signal = Some(Signal::Distance(position.distance_m(&Position::default())));
    }
    client.links = CLIENT_LINKS.given(section)?;
    check_links(section, wifi, client)?;
    check_client_acks(section, wifi, client)?;
    check_edca(section, standard, &client.edca.or(wifi.edca.clients()))?;
    client.access_category = access_category(section, Some(wifi))?;
    if client.back.is_some() && client.leave.is_none_or(|leave| client.back <= Some(leave)) {
        return Err(section.error("back", "comes back without having left").allowed("leave before back"));
    }
    client.ap_queue = queue(section, AP_QUEUE.name, QueueHop::Wifi)?;
    client.station_queue = queue(section, STATION_QUEUE.name, QueueHop::Wifi)?;
    Ok(())
}
