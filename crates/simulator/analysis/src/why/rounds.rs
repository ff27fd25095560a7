//! Multi-user PPDUs: their frequency and their cost.

use serde::Serialize;
use tacit_runs::aggregate::Group;
use tacit_scenario::table::number;

/// Multi-user PPDUs (OFDMA), as means over the seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rounds {
    /// Fraction of the access point's data PPDUs.
    pub shared_ppdu_share: f64,
    /// Users per PPDU.
    pub users_per_ppdu: f64,
    /// Fraction of the time of their resource units used by data. The rest is padding and unassigned units.
    pub unit_fill: f64,
    /// Fraction of time used by triggers sent in separate PPDUs.
    pub trigger_time_share: f64,
    /// Fraction of time used by PPDUs in which several users respond to a trigger.
    pub answer_time_share: f64,
    /// Triggers per second that request packets, sent in separate PPDUs.
    pub triggers_per_s: f64,
    /// Fraction of users without packets among those from which triggers request packets; null without such triggers.
    pub empty_answer_share: Option<f64>,
    /// Fraction of the room for compressed ACKs in Block Acks that was used; null without room.
    pub room_fill: Option<f64>,
    /// Fraction of these Block Acks with too little room; null without room.
    pub room_short_share: Option<f64>,
}

impl Rounds {
    /// The values of a group; `None` without multi-user PPDUs.
    pub(super) fn from_group(group: &Group<'_>) -> Option<Self> {
        Some(Self {
            shared_ppdu_share: group.mean_of("shared_ppdu_share")?,
            users_per_ppdu: group.mean_of("users_per_shared_ppdu")?,
            unit_fill: group.mean_of("shared_unit_fill")?,
            trigger_time_share: group.mean_of("trigger_time_share")?,
            answer_time_share: group.mean_of("answer_time_share")?,
            triggers_per_s: group.mean_of("triggers_per_s")?,
            empty_answer_share: group.mean_of("empty_answer_share"),
            room_fill: group.mean_of("hack_room_fill"),
            room_short_share: group.mean_of("hack_room_short_share"),
        })
    }

    /// The same as text, for `scheme`.
    pub(super) fn to_text(self, scheme: &str) -> String {
        let share = |share: f64| format!("{} %", number(share * 100.0, 1));
        let mut text = format!(
            "PPDUs of {scheme}: {} of the access point's were of several users, {} users each. Data took {} of their units' time; the \
             rest was padding, or units without a user. Triggers took {} of the time, and the answers to them {}.",
            share(self.shared_ppdu_share),
            number(self.users_per_ppdu, 1),
            share(self.unit_fill),
            share(self.trigger_time_share),
            share(self.answer_time_share),
        );
        let separate = (self.triggers_per_s > 0.0)
            .then(|| format!("{} triggers a second asked for packets", number(self.triggers_per_s, 1)));
        match (separate, self.empty_answer_share) {
            (separate, Some(empty)) => {
                let asked =
                    separate.unwrap_or_else(|| "Triggers inside PPDUs of data asked for packets".into());
                text.push_str(&format!(" {asked}: {} of the answers had none.", share(empty)));
            }
            (Some(separate), None) => text.push_str(&format!(" {separate}, and no client answered.")),
            (None, None) => {}
        }
        if let (Some(fill), Some(short)) = (self.room_fill, self.room_short_share) {
            text.push_str(&format!(
                " Room for compressed ACKs in Block Acks: {} of it was filled, {} of these Block Acks had too little.",
                share(fill),
                share(short)
            ));
        }
        text
    }
}
