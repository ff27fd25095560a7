//! An account as sentences and as a table.

use tacit_runs::metric;
use tacit_scenario::table::{Page, TextTable, count, number, significant};

use super::{Account, AckWays, BUSY, Evidence, LONGER_BACK, Part, Resource, Side, Why};

/// Minimum contribution, as a fraction of the difference, to be described in a sentence (our choice).
const WORTH_WORDS: f64 = 0.05;

impl Why {
    /// The explanation as text: a headline for each client count, then for each the bottleneck, a table of contributions, and
    /// sentences about the large ones. Lines have at most `width` characters, where columns are left out that do not fit.
    pub fn to_text(&self, width: Option<usize>) -> String {
        let mut page = Page::new(width);
        for account in &self.accounts {
            page.line(account.headline());
        }
        page.gap();
        page.line(format!("{}: {}", self.scenario, self.description));
        for account in &self.accounts {
            page.gap();
            if self.accounts.len() > 1 {
                page.line(count(account.clients.into(), "client"));
            }
            account.write(&mut page);
        }
        page.finish()
    }
}

impl Account {
    fn write(&self, page: &mut Page) {
        page.line(self.limit());
        for side in [&self.winner, &self.other] {
            if let Some(ways) = &side.hack {
                page.line(ways_of_acks(&side.scheme, ways));
            }
            if let Some(links) = &side.links {
                page.line(links.to_text(&side.scheme));
            }
            if let Some(rounds) = &side.rounds {
                page.line(rounds.to_text(&side.scheme));
            }
        }
        if !self.differs {
            return;
        }
        page.gap();
        page.table(&self.table());
        page.gap();
        let difference = self.difference_bps();
        let worth_naming =
            self.parts.iter().filter(|part| part.contribution_bps.abs() >= WORTH_WORDS * difference);
        for (part, number) in worth_naming.zip(1..) {
            page.line(format!("{number}. {}", self.words(part)));
        }
        page.line(self.remainder());
    }

    /// The part that the contributions do not explain.
    fn remainder(&self) -> String {
        let unexplained = self.parts.iter().filter(|part| part.unexplained);
        let share = unexplained.map(|part| part.contribution_bps).sum::<f64>() / self.difference_bps();
        format!(
            "Not explained: {} % of the difference, by which data itself took another time. The sum misses {} b/s.",
            signed(share * 100.0, 1),
            number(self.error_bps.abs(), 0)
        )
    }

    fn difference_bps(&self) -> f64 {
        self.winner.goodput_bps - self.other.goodput_bps
    }

    pub(super) fn headline(&self) -> String {
        let side = |side: &Side| {
            let ci =
                side.goodput_bps_ci95.map_or_else(String::new, |ci| format!(" ± {}", number(ci / 1e6, 2)));
            format!("{} {}{ci} Mb/s", side.scheme, number(side.goodput_bps / 1e6, 2))
        };
        let sides = format!(
            "{}, {}{}: {}, {}",
            count(self.clients.into(), "client"),
            count(self.seeds as u64, "seed"),
            if self.resource == Resource::Station { ", the first station alone" } else { "" },
            side(&self.winner),
            side(&self.other)
        );
        let gain = number(self.gain * 100.0, 1);
        match (self.differs, self.gain_ci95) {
            (false, _) if self.gain == 0.0 => {
                format!("{sides}. They are equal: there is no difference to explain.")
            }
            (true, Some(ci)) => {
                format!("{sides}: {} has {gain} ± {} % more.", self.winner.scheme, number(ci * 100.0, 1))
            }
            (true, None) => format!(
                "{sides}: {} has {gain} % more. Of one seed there is no telling whether it is chance.",
                self.winner.scheme
            ),
            (false, Some(ci)) => format!(
                "{sides}. The difference, {gain} %, is within its 95 % confidence interval of ± {} %: there is none to explain.",
                number(ci * 100.0, 1)
            ),
            (false, None) => format!("{sides}. There is no difference to explain."),
        }
    }

    /// The bottleneck, according to the fractions of time.
    fn limit(&self) -> String {
        let what = match self.resource {
            Resource::Channel => "Wi-Fi channel",
            Resource::Link => "wired or cellular link",
            Resource::Station => return self.station_limit(),
        };
        let busy = |side: &Side| format!("{} % under {}", number(side.busy * 100.0, 1), side.scheme);
        let both = format!("{} and {}", busy(&self.winner), busy(&self.other));
        match (self.winner.busy >= BUSY, self.other.busy >= BUSY) {
            (true, true) => format!("The {what} is the limit: it is in use {both}."),
            (false, false) => format!(
                "Nothing on the way is full: even the {what} is in use no more than {both}. The ends are the limit: \
                 windows, losses and timeouts, waiting for ACKs, or too little to send."
            ),
            _ => format!(
                "The fullest on the way is the {what}, in use {both}: only one of the two fills it.{}",
                self.way_back().unwrap_or_default()
            ),
        }
    }

    /// The utilisation of the station.
    fn station_limit(&self) -> String {
        let busy =
            |side: &Side| format!("{} % of the time under {}", number(side.busy * 100.0, 1), side.scheme);
        format!(
            "Packets of this station wait or are on the air {}, {}.",
            busy(&self.winner),
            busy(&self.other)
        )
    }

    /// If a link is idle, reports that the longest queue is not in the direction of data.
    fn way_back(&self) -> Option<String> {
        let evidence = || self.parts.iter().flat_map(|part| &part.evidence);
        let wait_us = |name: &str| Some(evidence().find(|evidence| evidence.metric == name)?.values[1]);
        let (data, longest) =
            (wait_us("first_way_queue_delay_p95_us")?, wait_us("wired_queue_delay_p95_us")?);
        (longest > LONGER_BACK * data).then(|| {
            format!(
                " Under {} ACKs wait on the way back, {} ms (95th percentile) where data waits {} ms.",
                self.other.scheme,
                number(longest / 1e3, 1),
                number(data / 1e3, 1)
            )
        })
    }

    fn whose_time(&self) -> &'static str {
        match self.resource {
            Resource::Channel | Resource::Link => "time of the bottleneck",
            Resource::Station => "time of the station",
        }
    }

    fn table(&self) -> TextTable {
        let mut table = TextTable::new(&[
            [self.whose_time(), "spent on"],
            ["contributes", "Mb/s"],
            ["of the", "difference"],
            ["ms per MB", &self.winner.scheme],
            ["ms per MB", &self.other.scheme],
        ])
        .dropping([4, 3]);
        let difference = self.difference_bps();
        for part in &self.parts {
            let ci = part
                .contribution_bps_ci95
                .map_or_else(String::new, |ci| format!(" ± {}", number(ci / 1e6, 2)));
            table.push(vec![
                part.name.to_owned(),
                format!("{}{ci}", signed(part.contribution_bps / 1e6, 2)),
                format!("{} %", signed(part.contribution_bps / difference * 100.0, 1)),
                number(part.ms_per_mb[0], 2),
                number(part.ms_per_mb[1], 2),
            ]);
        }
        let sum: f64 = self.parts.iter().map(|part| part.contribution_bps).sum();
        let total = |which: usize| number(self.parts.iter().map(|part| part.ms_per_mb[which]).sum(), 2);
        table.push(vec![
            "sum".to_owned(),
            format!("{:+.2}", sum / 1e6),
            format!("{:+.1} %", sum / difference * 100.0),
            total(0),
            total(1),
        ]);
        table
    }

    /// A contribution, with related counts of the runs.
    fn words(&self, part: &Part) -> String {
        let [winner, other] = part.ms_per_mb;
        let verb = if part.contribution_bps >= 0.0 { "less" } else { "more" };
        let mut line = format!(
            "{}: {} spends {} ms per MB {verb} on it than {}, {} instead of {}; that makes {:+.2} Mb/s.",
            capitalised(part.name),
            self.winner.scheme,
            number((winner - other).abs(), 2),
            self.other.scheme,
            number(winner, 2),
            number(other, 2),
            part.contribution_bps / 1e6
        );
        for Evidence { metric, values } in &part.evidence {
            let Some(place) = metric::position(metric) else { continue };
            let [winner, other] = values.map(significant);
            if winner != other {
                line.push_str(&format!(
                    "\n   {metric}: {winner} instead of {other} ({})",
                    metric::ALL[place].summary
                ));
            }
        }
        line
    }
}

/// How the ACKs of `scheme` were sent.
fn ways_of_acks(scheme: &str, ways: &AckWays) -> String {
    format!(
        "ACKs of {scheme}: {} rode on link-layer ACKs in {} % of the time, {} gave way to those, {} went as packets, \
         {} of them because that takes less airtime.",
        number(ways.compressed_acks, 0),
        number(ways.airtime_share * 100.0, 2),
        number(ways.thinned_acks, 0),
        number(ways.native_acks, 0),
        number(ways.cheaper_acks, 0)
    )
}

/// A number with its sign, unless it rounds to zero.
fn signed(value: f64, decimals: usize) -> String {
    let text = format!("{value:+.decimals$}");
    let is_nothing = value.is_finite() && !text.contains(|letter: char| ('1'..='9').contains(&letter));
    if is_nothing { text[1..].to_owned() } else { text }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
