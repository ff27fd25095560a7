//! Advice as text.

use super::{Advice, Choice, Verdict};
use crate::compare::{Row, gain, goodput};
use tacit_scenario::table::{TextTable, count, number, number_or_dash};

pub(super) fn laid_out(advice: &Advice) -> String {
    let comparison = &advice.comparison;
    let mut text = format!("{}: {}\n", comparison.scenario, comparison.provenance.description);
    text.push_str(&format!(
        "{}, {}, {} s measured in each, the same draws for every scheme; ± is the 95 % confidence interval\n",
        count(advice.clients.into(), "client"),
        count(advice.today.seeds as u64, "seed"),
        number(comparison.measured_s, if comparison.measured_s < 10.0 { 1 } else { 0 }),
    ));
    if !comparison.conditions.is_empty() {
        text.push_str(&format!("with {}\n", comparison.conditions.join(", ")));
    }
    for warning in &comparison.warnings {
        text.push_str(&format!("warning: {warning}\n"));
    }
    text.push('\n');
    text.push_str(&sentences(advice));
    text.push('\n');
    text.push_str(&table(advice).render());
    text.push_str("\nWhat the runs do not show:\n");
    for choice in &advice.choices {
        text.push_str(&format!("  {}: {}\n", choice.change, choice.cost));
    }
    text.push_str(&format!(
        "\nQueueing is the wait in the queue of the station that sends most, for downloads the access point; one way is \
         from end to end.\n`tacit explain` says whether FWP suits, which carries HTTP only. All {} schemes:\n  {}\n",
        comparison.rows.len(),
        comparison.provenance.command,
    ));
    text
}

fn sentences(advice: &Advice) -> String {
    let Some(first) = advice.first else {
        let little = advice.choices.iter().filter(|choice| choice.verdict == Verdict::Little).count();
        let rest = if little == 0 { "" } else { "; what gains at all gains less than 2 %" };
        return format!(
            "Keep what there is: {} Mb/s, {}, and no change gains 2 % for certain{rest}.\n",
            goodput(&advice.today),
            frequency(&advice.today)
        );
    };
    let mut text = format!("Today: {} Mb/s, {}.\n", goodput(&advice.today), frequency(&advice.today));
    let first = &advice.choices[first];
    text.push_str(&format!("Smallest change that is worth it:\n{}", said(first, &advice.today)));
    if let Some(most) = advice.most {
        text.push_str(&format!("Most is gained by:\n{}", said(&advice.choices[most], &advice.today)));
    }
    text
}

/// A choice with what it gains and costs.
fn said(choice: &Choice, today: &Row) -> String {
    let waits = [
        ("wait", today.queue_delay_p95_us.zip(choice.row.queue_delay_p95_us)),
        ("take", today.one_way_delay_p95_us.zip(choice.row.one_way_delay_p95_us)),
    ];
    let wait = waits.into_iter().find_map(|(verb, times)| {
        let (before, after) = times?;
        Some(format!("; 95 % of packets {verb} up to {} instead of {} ms", ms(after), ms(before)))
    });
    let wait = wait.unwrap_or_default();
    format!(
        "  {}: {} ({})\n  {} Mb/s, {}; {}{wait}\n",
        choice.change,
        choice.scheme,
        choice.summary,
        goodput(&choice.row),
        gain(&choice.row),
        frequency(&choice.row),
    )
}

fn ms(us: f64) -> String {
    number(us / 1e3, 1)
}

/// How often receivers acknowledged.
fn frequency(row: &Row) -> String {
    match row.acks_per_data_packet {
        Some(ratio) if ratio > 0.0 => format!("an ACK per {} packets", number(1.0 / ratio, 1)),
        _ => "no ACKs".to_owned(),
    }
}

/// Of a Wi-Fi hop the wait in a queue, of wires what packets take from end to end.
const fn delay_heads(row: &Row) -> [&'static str; 2] {
    if row.one_way_delay_p95_us.is_some() { ["one way", "p95 ms"] } else { ["queueing", "p50 / p95 ms"] }
}

fn table(advice: &Advice) -> TextTable {
    let mut table = TextTable::new(&[
        ["", "who changes"],
        ["", "best scheme"],
        ["goodput", "Mb/s"],
        ["gain", ""],
        ["packets", "per ACK"],
        ["ACKs", "on air/s"],
        delay_heads(&advice.today),
        ["", "worth it"],
    ]);
    let mut push = |who: &str, row: &Row, worth: &str| {
        let wait = |us: Option<f64>| number_or_dash(us.map(|us| us / 1e3), 1);
        let per_ack = row.acks_per_data_packet.filter(|ratio| *ratio > 0.0).map(|ratio| 1.0 / ratio);
        table.push(vec![
            who.to_owned(),
            row.scheme.clone(),
            goodput(row),
            gain(row),
            number_or_dash(per_ack, 1),
            number_or_dash(row.tcp_acks_on_air_per_s, 0),
            match row.one_way_delay_p95_us {
                Some(delay) => wait(Some(delay)),
                None => format!("{} / {}", wait(row.queue_delay_p50_us), wait(row.queue_delay_p95_us)),
            },
            worth.to_owned(),
        ]);
    };
    push("nobody", &advice.today, "");
    for choice in &advice.choices {
        let worth = match choice.verdict {
            Verdict::Worth => "yes",
            Verdict::Little => "little",
            Verdict::Nothing => "no",
        };
        push(choice.change, &choice.row, worth);
    }
    table
}
