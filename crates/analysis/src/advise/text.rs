//! Advice as text.

use super::{
    Advice, Answer, Choice, Frequencies, Frequency, Limit, LimitedBy, Queue, QueueKind, Sharing, Verdict,
};
use crate::compare::{Row, gain, goodput};
use crate::why::Resource;
use tacit_scenario::table::{TextTable, count, number, number_or_dash, percent};

pub(super) fn laid_out(advice: &Advice) -> String {
    let comparison = &advice.comparison;
    let mut text = format!("{}: {}\n", comparison.scenario, comparison.provenance.description);
    let seeds = match advice.seeds {
        [fewest, most] if fewest == most => count(most.into(), "seed"),
        [fewest, most] => format!("{fewest} seeds, up to {most} where intervals overlap"),
    };
    text.push_str(&format!(
        "{}, {seeds}, {} s measured in each, the same draws for every scheme; ± is the 95 % confidence interval\n",
        count(advice.clients.into(), "client"),
        number(comparison.measured_s, if comparison.measured_s < 10.0 { 1 } else { 0 }),
    ));
    if !comparison.conditions.is_empty() {
        text.push_str(&format!("with {}\n", comparison.conditions.join(", ")));
    }
    for warning in &comparison.warnings {
        text.push_str(&format!("warning: {warning}\n"));
    }
    text.push_str(&format!("\n{}\n\n", limit(&advice.limit, advice.queue.as_ref())));
    text.push_str(&sentences(&advice.answer));
    text.push('\n');
    text.push_str(&table(&advice.answer).render());
    text.push_str(&queues(advice));
    text.push_str(&frequencies(&advice.frequencies));
    text.push_str(&advice.sharing.as_ref().map_or_else(String::new, sharing));
    text.push_str("\nWhat the runs do not show:\n");
    for choice in &advice.answer.choices {
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

/// The bottleneck, and the queue at it.
fn limit(limit: &Limit, queue: Option<&Queue>) -> String {
    let busy = percent(limit.busy, 1);
    let way = match limit.resource {
        Some(Resource::Channel) => "the Wi-Fi channel",
        _ => "the wired or cellular link",
    };
    let queue = queue.map(|queue| format!(" Data waits for it in {}.", described(queue))).unwrap_or_default();
    match limit.by {
        LimitedBy::Channel => {
            let acks = limit.airtime_tcp_ack.filter(|share| *share > 0.0);
            let acks = acks.map(|share| format!(", {} for ACKs alone", percent(Some(share), 1)));
            format!("The Wi-Fi channel is the limit, in use {busy}{}.{queue}", acks.unwrap_or_default())
        }
        LimitedBy::Link => format!(
            "The wired or cellular link is the limit, in use {busy}: ACKs can add no more than the rest.{queue}"
        ),
        LimitedBy::WayBack => format!(
            "The way back is the limit: ACKs wait there for longer than data does, and {way} is in use {busy}.{queue}"
        ),
        LimitedBy::Source => format!(
            "The programs are the limit: even {way} is in use no more than {busy}, and they wait for users or their own rate. \
             How often ACKs come cannot raise the goodput; other queues were not tried."
        ),
        LimitedBy::Queue => format!(
            "The queue is the limit, too short for a window: {way} is in use {busy}, and with a longer queue it carries \
             more.{queue}"
        ),
        LimitedBy::Ends => format!(
            "Nothing on the way is full: even {way} is in use no more than {busy}. The ends are the limit: windows, losses \
             ({} of data packets are sent again) and timeouts, or ACKs that come too late.{queue}",
            percent(limit.tcp_retransmitted_share, 2)
        ),
    }
}

/// A description of a queue.
fn described(queue: &Queue) -> String {
    let kind = match queue.kind {
        QueueKind::Short => "a short queue",
        QueueKind::Ample => "an ample queue",
        QueueKind::FqCodel => return "a queue under CoDel".to_owned(),
    };
    match (queue.packets, queue.bandwidth_delay_products) {
        (Some(packets), Some(products)) => {
            format!("{kind}: {packets} packets, {} bandwidth-delay products", products_text(products))
        }
        _ => kind.to_owned(),
    }
}

fn products_text(products: f64) -> String {
    number(products, if products < 10.0 { 1 } else { 0 })
}

fn sentences(answer: &Answer) -> String {
    let Some(first) = answer.first else {
        let of = |verdict| answer.choices.iter().filter(|choice| choice.verdict == verdict).count();
        let rest = match (of(Verdict::NotSeparated), of(Verdict::Little)) {
            (0, 0) => "",
            (0, _) => "; the largest gain is below 2 %",
            _ => "; of some these runs do not say (not separated)",
        };
        return format!(
            "Change nothing: {} Mb/s, {}, and no change gains 2 % for certain{rest}.\n",
            goodput(&answer.today),
            frequency(&answer.today)
        );
    };
    let mut text = format!("Today: {} Mb/s, {}.\n", goodput(&answer.today), frequency(&answer.today));
    text.push_str(&format!(
        "Smallest change that is worth it:\n{}",
        said(&answer.choices[first], &answer.today)
    ));
    if let Some(most) = answer.most {
        text.push_str(&format!("Most is gained by:\n{}", said(&answer.choices[most], &answer.today)));
    }
    if !answer.most_not_separated_from.is_empty() {
        let others = answer.most_not_separated_from.iter().map(|at| answer.choices[*at].scheme.as_str());
        text.push_str(&format!(
            "  These runs do not separate it from {}.\n",
            others.collect::<Vec<_>>().join(", ")
        ));
    }
    text
}

/// A choice with its gains and costs as text.
fn said(choice: &Choice, today: &Row) -> String {
    let waits = [
        ("wait", today.means.queue_delay_p95_us.zip(choice.row.means.queue_delay_p95_us)),
        ("take", today.means.one_way_delay_p95_us.zip(choice.row.means.one_way_delay_p95_us)),
    ];
    let wait = waits.into_iter().find_map(|(verb, times)| {
        let (before, after) = times?;
        Some(format!("; 95 % of packets {verb} up to {} instead of {} ms", ms(after), ms(before)))
    });
    let wait = wait.unwrap_or_default();
    let open = match choice.not_separated_from.as_slice() {
        [] => String::new(),
        others => format!("; not separated from {}", others.join(", ")),
    };
    format!(
        "  {}: {} ({})\n  {} Mb/s, {}; {}{wait}{open}\n",
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

/// The ACK frequency of receivers.
fn frequency(row: &Row) -> String {
    match row.means.acks_per_data_packet {
        Some(ratio) if ratio > 0.0 => format!("an ACK per {} packets", number(1.0 / ratio, 1)),
        _ => "no ACKs".to_owned(),
    }
}

/// Headings of delays: queueing delay for a Wi-Fi hop, one-way delay for wires.
const fn delay_heads(row: &Row) -> [&'static str; 2] {
    if row.means.one_way_delay_p95_us.is_some() {
        ["one way", "p95 ms"]
    } else {
        ["queueing", "p50 / p95 ms"]
    }
}

/// Results of a row: seeds, goodput, gain, packets per ACK, ACKs on the air, delay.
fn measured(row: &Row) -> [String; 6] {
    let wait = |us: Option<f64>| number_or_dash(us.map(|us| us / 1e3), 1);
    let per_ack = row.means.acks_per_data_packet.filter(|ratio| *ratio > 0.0).map(|ratio| 1.0 / ratio);
    [
        row.seeds.to_string(),
        goodput(row),
        gain(row),
        number_or_dash(per_ack, 1),
        number_or_dash(row.means.tcp_acks_on_air_per_s, 0),
        match row.means.one_way_delay_p95_us {
            Some(delay) => wait(Some(delay)),
            None => {
                format!("{} / {}", wait(row.means.queue_delay_p50_us), wait(row.means.queue_delay_p95_us))
            }
        },
    ]
}

/// Headings of these results.
const fn measured_heads(row: &Row) -> [[&'static str; 2]; 6] {
    [
        ["", "seeds"],
        ["goodput", "Mb/s"],
        ["gain", ""],
        ["packets", "per ACK"],
        ["ACKs", "on air/s"],
        delay_heads(row),
    ]
}

fn table(answer: &Answer) -> TextTable {
    let heads =
        [&[["", "change"], ["", "best scheme"]][..], &measured_heads(&answer.today), &[["", "worth it"]]];
    let mut table = TextTable::new(&heads.concat());
    let mut push = |who: &str, row: &Row, worth: &str| {
        let named = [who.to_owned(), row.scheme.clone()];
        table.push([&named[..], &measured(row), &[worth.to_owned()]].concat());
    };
    push("none", &answer.today, "");
    for choice in &answer.choices {
        push(choice.change, &choice.row, worth(choice.verdict));
    }
    table
}

const fn worth(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Worth => "yes",
        Verdict::Little => "little",
        Verdict::NotSeparated => "not separated",
        Verdict::Nothing => "no",
    }
}

/// The answers for each kind of queue.
fn queues(advice: &Advice) -> String {
    let Some(own) = advice.queue.as_ref().filter(|_| !advice.other_queues.is_empty()) else {
        return match advice.limit.by {
            LimitedBy::Source => String::new(),
            _ => "\nNo setting reaches the queue before the limit: the answer is for the queues that there are.\n".to_owned(),
        };
    };
    let mut table = TextTable::new(&[
        ["", "queue"],
        ["holds", "packets"],
        ["bandwidth-delay", "products"],
        ["today", "Mb/s"],
        ["smallest change", "that is worth it"],
        ["", "gain"],
        ["", "most"],
        ["", "gain"],
    ]);
    let mut push = |queue: &Queue, whose: &str, answer: &Answer| {
        let kind = match queue.kind {
            QueueKind::Short => "short",
            QueueKind::Ample => "ample",
            QueueKind::FqCodel => "FQ-CoDel",
        };
        let named = |index: Option<usize>| match index.map(|index| &answer.choices[index]) {
            Some(choice) => [choice.scheme.clone(), gain(&choice.row)],
            None => ["–".to_owned(), String::new()],
        };
        let top = named(answer.most.or(answer.first));
        let open = answer.most_not_separated_from.iter().map(|at| answer.choices[*at].scheme.as_str());
        let top_name = std::iter::once(top[0].as_str()).chain(open).collect::<Vec<_>>().join(", ");
        let first = named(answer.first);
        table.push(vec![
            format!("{kind}{whose}"),
            queue.packets.map_or_else(|| "–".to_owned(), |packets| packets.to_string()),
            queue.bandwidth_delay_products.map_or_else(|| "–".to_owned(), products_text),
            goodput(&answer.today),
            first[0].clone(),
            first[1].clone(),
            top_name,
            top[1].clone(),
        ]);
    };
    push(own, ", as it is", &advice.answer);
    for other in &advice.other_queues {
        push(&other.queue, "", &other.answer);
    }
    let sets: Vec<String> =
        advice.other_queues.iter().flat_map(|other| &other.set).map(|set| format!("--set '{set}'")).collect();
    format!(
        "\nBy the queue before the limit; several names are not separated:\n{}Set by {}.\n",
        table.render(),
        sets.join(", ")
    )
}

/// Receivers that acknowledge a fixed number of segments.
fn frequencies(frequencies: &Frequencies) -> String {
    let Some(first) = frequencies.rows.first() else { return String::new() };
    let heads = [&[["segments", "per ACK"], ["", "scheme"]][..], &measured_heads(&first.row)];
    let mut table = TextTable::new(&heads.concat());
    let every = |frequency: &Frequency| match frequency.segments {
        Some(segments) => segments.to_string(),
        None => "RTT/4".to_owned(),
    };
    for frequency in &frequencies.rows {
        let named = [every(frequency), frequency.row.scheme.clone()];
        table.push([&named[..], &measured(&frequency.row)].concat());
    }
    let places = |places: &[usize]| {
        places.iter().map(|at| every(&frequencies.rows[*at])).collect::<Vec<_>>().join(", ")
    };
    let best = frequencies.best.map_or_else(String::new, |best| {
        let open = match frequencies.not_separated_from.as_slice() {
            [] => String::new(),
            open => format!("; these runs do not separate {} from it", places(open)),
        };
        format!("Best of these: {}{open}.\n", places(&[best]))
    });
    format!("\nBy segments per ACK, with the queue as it is:\n{}{best}", table.render())
}

/// Options of the access point.
fn sharing(sharing: &Sharing) -> String {
    let Some(first) = sharing.settings.first() else { return String::new() };
    let heads = first.rows.iter().map(|row| [row.scheme.as_str(), "Mb/s"]);
    let mut table =
        TextTable::new(&std::iter::once(["", "the access point"]).chain(heads).collect::<Vec<_>>());
    for setting in &sharing.settings {
        let cells = setting.rows.iter().map(goodput);
        table.push(std::iter::once(setting.name.to_owned()).chain(cells).collect());
    }
    let best = &sharing.settings[sharing.best];
    let others = sharing.as_good.iter().map(|place| sharing.settings[*place].name).collect::<Vec<_>>();
    let as_good = match others.as_slice() {
        [] => String::new(),
        others => format!("; these runs do not separate from it: {}", others.join(", ")),
    };
    let set = best.set.iter().map(|set| format!("--set {set}")).collect::<Vec<_>>().join(" ");
    format!(
        "\nBy the access point's options for several clients at once:\n{}Stock clients have most with: {} ({set}){as_good}.\n",
        table.render(),
        best.name,
    )
}
