//! Advice as text.

use super::{
    Advice, Answer, Choice, Frequencies, Frequency, Limit, LimitedBy, Queue, QueueKind, Sharing, SharingKind,
    Verdict, settings,
};
use crate::compare::{Row, adoption_table, gain, goodput};
use crate::why::Resource;
use tacit_scenario::quoted;
use tacit_scenario::table::{Page, TextTable, count, number, number_or_dash, percent};

pub(super) fn laid_out(advice: &Advice, width: Option<usize>) -> String {
    let comparison = &advice.comparison;
    let mut page = Page::new(width);
    page.line(headline(&advice.answer));
    page.line(limit(&advice.limit, advice.queue.as_ref()));
    page.gap();
    page.line(format!("{}: {}", comparison.scenario, comparison.provenance.description));
    let seeds = match advice.seeds {
        [fewest, most] if fewest == most => count(most.into(), "seed"),
        [fewest, most] => format!("{fewest} seeds, up to {most} where intervals overlap"),
    };
    page.line(format!(
        "{}, {seeds}, {} s measured in each, the same draws for every scheme; ± is the 95 % confidence interval",
        count(advice.clients.into(), "client"),
        number(comparison.measured_s, if comparison.measured_s < 10.0 { 1 } else { 0 }),
    ));
    if !comparison.conditions.is_empty() {
        page.line(format!("with {}", comparison.conditions.join(", ")));
    }
    for warning in &comparison.warnings {
        page.line(format!("warning: {warning}"));
    }
    page.gap();
    for line in sentences(&advice.answer) {
        page.line(line);
    }
    page.gap();
    page.table(&table(&advice.answer));
    adoption(&mut page, advice);
    queues(&mut page, advice);
    frequencies(&mut page, &advice.frequencies);
    if let Some(options) = &advice.sharing {
        sharing(&mut page, options);
    }
    let of_receivers = |at: Option<usize>| {
        at.is_some_and(|at| {
            advice.answer.choices[at].settings.iter().any(|set| set.starts_with("ACK_FREQUENCY"))
        })
    };
    if of_receivers(advice.answer.first) || of_receivers(advice.answer.most) {
        page.gap();
        page.line("Where stacks of QUIC have that setting:");
        for stack in settings::stacks() {
            page.line(format!("  {stack}"));
        }
    }
    page.gap();
    page.line("What the runs do not show:");
    for choice in &advice.answer.choices {
        page.line(format!("  {}: {}", choice.change, choice.cost));
    }
    page.gap();
    page.line(
        "Queueing is the wait in the queue of the station that sends most, for downloads the access point; one way is from \
         end to end.",
    );
    page.line(format!(
        "`tacit explain` says whether FWP suits, which carries HTTP only. All {} schemes:",
        comparison.rows.len()
    ));
    page.line(format!("  {}", comparison.provenance.command));
    page.finish()
}

/// Goodput, and how long files take where they end.
fn had(row: &Row) -> String {
    let time = row.means.flow_completion_p50_s.map(|time| format!("files take {} s, ", number(time, 2)));
    format!("{}{} Mb/s", time.unwrap_or_default(), goodput(row))
}

/// The answer in a sentence or two.
fn headline(answer: &Answer) -> String {
    let named = |choice: &Choice| format!("{} ({}), {}", choice.scheme, choice.side, gain(&choice.row));
    let Some(first) = answer.first else {
        let count_with = |verdict| answer.choices.iter().filter(|choice| choice.verdict == verdict).count();
        let rest = match (count_with(Verdict::NotSeparated), count_with(Verdict::Little)) {
            (0, 0) => "",
            (0, _) => "; the largest gain is below 2 %",
            _ => "; of some these runs do not say (not separated)",
        };
        return format!(
            "Change nothing: {}, {}, and no change gains 2 % for certain{rest}.",
            had(&answer.today),
            frequency(&answer.today)
        );
    };
    let first = format!("Smallest change that is worth it: {}.", named(&answer.choices[first]));
    match answer.most {
        Some(most) => format!("{first} Most is gained by {}.", named(&answer.choices[most])),
        None => first,
    }
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
        LimitedBy::Radio => format!(
            "The one radio that clients have for their links is the limit, in use {busy}, with its ways back to listening: while it is \
             on one link, the others are idle.{queue}"
        ),
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

/// The changes of the headline with what they cost and change; none without such changes.
fn sentences(answer: &Answer) -> Vec<String> {
    let Some(first) = answer.first else { return Vec::new() };
    let mut lines = vec![format!("Today: {}, {}.", had(&answer.today), frequency(&answer.today))];
    lines.push("Smallest change that is worth it:".to_owned());
    lines.extend(choice_lines(&answer.choices[first], &answer.today));
    if let Some(most) = answer.most {
        lines.push("Most is gained by:".to_owned());
        lines.extend(choice_lines(&answer.choices[most], &answer.today));
    }
    if !answer.most_not_separated_from.is_empty() {
        let others = answer.most_not_separated_from.iter().map(|at| answer.choices[*at].scheme.as_str());
        let others = others.collect::<Vec<_>>().join(", ");
        lines.push(format!("  These runs do not separate it from {others}."));
    }
    lines
}

/// A choice with its gains and costs as lines of text.
fn choice_lines(choice: &Choice, today: &Row) -> Vec<String> {
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
    let mut lines = vec![
        format!("  {}: {} ({})", choice.change, choice.scheme, choice.summary),
        format!("  {}, {}; {}{wait}{open}", had(&choice.row), gain(&choice.row), frequency(&choice.row)),
    ];
    lines.extend(choice.settings.iter().map(|setting| format!("  set: {setting}")));
    lines
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
        [&[["who", "changes"], ["", "best scheme"]][..], &measured_heads(&answer.today), &[["", "worth it"]]];
    let mut table = TextTable::new(&heads.concat()).dropping([2, 6, 5, 7, 3]);
    let mut push = |who: &str, row: &Row, worth: &str| {
        let named = [who.to_owned(), row.scheme.clone()];
        table.push([&named[..], &measured(row), &[worth.to_owned()]].concat());
    };
    push("nobody", &answer.today, "");
    for choice in &answer.choices {
        push(choice.side, &choice.row, worth(choice.verdict));
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

/// What one client gains that makes a recommended change alone, and what the others lose.
fn adoption(page: &mut Page, advice: &Advice) {
    let Some(first) = advice.adoption.first() else { return };
    let others = first.clients.saturating_sub(1);
    page.gap();
    page.line(format!(
        "If one client makes the change alone, beside {} with stock:",
        count(others.into(), "other")
    ));
    page.table(&adoption_table(&advice.adoption.iter().collect::<Vec<_>>()));
}

/// The answers for each kind of queue.
fn queues(page: &mut Page, advice: &Advice) {
    let Some(current) = advice.queue.as_ref().filter(|_| !advice.other_queues.is_empty()) else {
        if advice.limit.by != LimitedBy::Source {
            page.gap();
            page.line(
                "No setting reaches the queue before the limit: the answer is for the queues that there are.",
            );
        }
        return;
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
    ])
    .dropping([2, 1, 3, 5]);
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
    push(current, ", as it is", &advice.answer);
    for other in &advice.other_queues {
        push(&other.queue, "", &other.answer);
    }
    let sets: Vec<String> =
        advice.other_queues.iter().flat_map(|other| &other.set).map(|set| format!("--set '{set}'")).collect();
    page.gap();
    page.line("By the queue before the limit; several names are not separated:");
    page.table(&table);
    page.line(format!("Set by {}.", sets.join(", ")));
}

/// Receivers that acknowledge a fixed number of segments.
fn frequencies(page: &mut Page, frequencies: &Frequencies) {
    let Some(first) = frequencies.rows.first() else { return };
    let heads = [&[["segments", "per ACK"], ["", "scheme"]][..], &measured_heads(&first.row)];
    let mut table = TextTable::new(&heads.concat()).dropping([2, 6, 5]);
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
    page.gap();
    page.line("By segments per ACK, with the queue as it is:");
    page.table(&table);
    if let Some(best) = frequencies.best {
        let open = match frequencies.not_separated_from.as_slice() {
            [] => String::new(),
            open => format!("; these runs do not separate {} from it", places(open)),
        };
        page.line(format!("Best of these: {}{open}.", places(&[best])));
    }
}

/// Options of the access point.
fn sharing(page: &mut Page, sharing: &Sharing) {
    let Some(first) = sharing.settings.first() else { return };
    let heads = first.rows.iter().map(|row| [row.scheme.as_str(), "Mb/s"]);
    let (title, column) = match sharing.kind {
        SharingKind::Ofdma => ("the access point's options for several clients at once", "the access point"),
        SharingKind::Links => ("the use of the links", "used"),
    };
    let mut table = TextTable::new(&std::iter::once(["", column]).chain(heads).collect::<Vec<_>>());
    for setting in &sharing.settings {
        let cells = setting.rows.iter().map(goodput);
        table.push(std::iter::once(setting.name.to_owned()).chain(cells).collect());
    }
    let best = &sharing.settings[sharing.best];
    let others =
        sharing.as_good.iter().map(|place| sharing.settings[*place].name.as_str()).collect::<Vec<_>>();
    let as_good = match others.as_slice() {
        [] => String::new(),
        others => format!("; these runs do not separate from it: {}", others.join(", ")),
    };
    let set = best.set.iter().map(|set| format!("--set {}", quoted(set))).collect::<Vec<_>>().join(" ");
    page.gap();
    page.line(format!("By {title}:"));
    page.table(&table);
    page.line(format!("Stock clients have most with: {} ({set}){as_good}.", best.name));
}
