//! Several links of 802.11be: what each lost to collisions and to the window that they have in common.

use serde::Serialize;
use tacit_runs::aggregate::Group;
use tacit_scenario::table::number;

/// Several links, as means over the seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Links {
    /// Each link, in order.
    pub links: Vec<LinkUse>,
    /// Fraction of packets that waited in reorder buffers.
    pub reorder_held_share: f64,
    /// 95th percentile of that wait; null if no packet waited.
    pub reorder_delay_p95_us: Option<f64>,
    /// What clients lost that cannot do everything on all links at once; null where there is none.
    pub radios: Option<RadioUse>,
}

/// Clients that have one radio for several links (EMLSR), or whose signal deafens other links (NSTR).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RadioUse {
    /// Initial control frames per second.
    pub icfs_per_s: f64,
    /// Those without an answer.
    pub icf_failures_per_s: f64,
    /// Fraction of time in which a client returned to listening.
    pub transition_share: f64,
    /// Fraction of time in which it heard nothing on a link, as a mean over its links.
    pub deaf_share: f64,
}

/// A link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LinkUse {
    /// Bytes that it settled, as a rate.
    pub goodput_bps: f64,
    /// Collisions per second.
    pub collisions_per_s: f64,
    /// Fraction of MPDUs that were retransmissions.
    pub retry_share: f64,
    /// Fraction of time in which the common window kept the access point from sending.
    pub window_stall_share: f64,
}

/// Share of stalls that is worth a hint: less is within what a beacon or a collision costs. Our choice.
const MUCH_STALLED: f64 = 0.02;

impl Links {
    /// The values of a group; `None` with one link.
    pub(super) fn from_group(group: &Group<'_>) -> Option<Self> {
        let link = |number: u32| {
            let mean = |what: &str| group.mean_of(&format!("link{number}_{what}"));
            Some(LinkUse {
                goodput_bps: mean("goodput_bps")?,
                collisions_per_s: mean("collisions_per_s")?,
                retry_share: mean("retry_share").unwrap_or(0.0),
                window_stall_share: mean("window_stall_share")?,
            })
        };
        let links: Vec<LinkUse> = (1..).map_while(link).collect();
        let radios = || {
            Some(RadioUse {
                icfs_per_s: group.mean_of("icfs_per_s")?,
                icf_failures_per_s: group.mean_of("icf_failures_per_s")?,
                transition_share: group.mean_of("transition_share")?,
                deaf_share: group.mean_of("deaf_share")?,
            })
        };
        (!links.is_empty()).then(|| Self {
            links,
            radios: radios(),
            reorder_held_share: group.mean_of("reorder_held_share").unwrap_or(0.0),
            reorder_delay_p95_us: group.mean_of("reorder_delay_p95_us"),
        })
    }

    /// The same as text, for `scheme`.
    pub(super) fn to_text(&self, scheme: &str) -> String {
        let share = |share: f64| format!("{} %", number(share * 100.0, 1));
        let each = self.links.iter().zip(1..).map(|(link, place)| {
            format!(
                "link {place} {} Mb/s, {} collisions a second, {} of its MPDUs sent again, stalled {} of the time",
                number(link.goodput_bps / 1e6, 1),
                number(link.collisions_per_s, 1),
                share(link.retry_share),
                share(link.window_stall_share),
            )
        });
        let mut text = format!("Links of {scheme}: {}.", each.collect::<Vec<_>>().join("; "));
        if let Some(p95) = self.reorder_delay_p95_us {
            text.push_str(&format!(
                " {} of the packets waited in a reorder buffer, the 95th percentile {} ms.",
                share(self.reorder_held_share),
                number(p95 / 1e3, 1)
            ));
        }
        if let Some(radios) = self.radios {
            if radios.icfs_per_s > 0.0 {
                text.push_str(&format!(
                    " Clients with one radio were called {} times a second, {} of them without an answer, and returned to listening \
                     for {} of the time.",
                    number(radios.icfs_per_s, 1),
                    number(radios.icf_failures_per_s, 1),
                    share(radios.transition_share),
                ));
            }
            let deaf = share(radios.deaf_share);
            text.push_str(&format!(
                " While busy elsewhere, clients heard nothing on a link for {deaf} of the time."
            ));
        }
        if self.links.iter().any(|link| link.window_stall_share > MUCH_STALLED) {
            text.push_str(
                " A link stalls where the others' MPDUs fill the common Block Ack window: a longer wifi.block-ack-window, or \
                 wifi.multi-link.share = \"proportional\", gives it room.",
            );
        }
        text
    }
}
