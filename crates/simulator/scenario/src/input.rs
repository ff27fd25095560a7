//! Reads TOML written by users ([`tacit_input`]), and the quantities that only links have.

use std::ops::RangeInclusive;

use tacit_link::wifi::Decibels;
use tacit_link::wifi::phy::Standard;
use tacit_link::{GilbertElliott, Loss, QueueLimit};
use tacit_packet::units::{Bytes, Ratio};

pub use tacit_input::{
    Asked, Log, MAX_DURATION, Mismatch, Node, Origin, Section, Tree, Value, argument, bit_rate, byte_count,
    did_you_mean, duration, few, flag, integer, level_dbm, line, metres, millidecibels, name_of, nearest,
    number, numbers, one_of, packets, parse_rtt, ratio, text, texts, title, unit, within, within_limits,
};

/// Parses a ratio of powers, which may be below one.
///
/// # Errors
/// Unless the value is a string such as "25 dB" or "-3.5 dB".
pub fn decibels(value: &Value) -> Result<Decibels, Mismatch> {
    millidecibels(value).map(Decibels::from_millis)
}

/// Parses an amendment of 802.11: its name, such as `802.11ax`, `11ax` or `ax`, or the generation, such as `wifi6`.
///
/// # Errors
/// Unless the value is one of these.
pub fn standard(value: &Value) -> Result<Standard, Mismatch> {
    const GENERATIONS: [(&str, Standard); 5] = [
        ("4", Standard::N),
        ("5", Standard::Ac),
        ("6", Standard::Ax),
        ("6e", Standard::Ax),
        ("7", Standard::Be),
    ];
    let names = Standard::ALL.map(|standard| (standard.name(), standard));
    let given = one_of(&names)(value);
    let Value::Text(text) = value else { return given };
    let plain: String = text.to_lowercase().chars().filter(|letter| !matches!(letter, ' ' | '-')).collect();
    let short =
        ["802.11", "11", "wifi"].iter().find_map(|prefix| plain.strip_prefix(prefix)).unwrap_or(&plain);
    let amendments = Standard::ALL.map(|standard| (standard.name().trim_start_matches("802.11"), standard));
    let known = amendments.iter().chain(&GENERATIONS).find(|(name, _)| *name == short);
    known.map_or(given, |(_, standard)| Ok(*standard))
}

/// Parses a queue limit: packets, bytes, both separated by a comma, or `"unlimited"`.
///
/// # Errors
/// Unless the value is one of these and allows at least one packet or byte.
pub fn queue_limit(value: &Value) -> Result<QueueLimit, Mismatch> {
    let allowed = "\"126 packets\", \"64 KiB\", \"126 packets, 64 KiB\" or \"unlimited\"";
    let wrong = || Mismatch::new(format!("{value} is not a queue limit"), allowed);
    let Value::Text(text) = value else { return Err(wrong()) };
    let mut limit = QueueLimit::default();
    if text.trim() == "unlimited" {
        return Ok(limit);
    }
    for part in text.split(',') {
        if let Some(packets) = packets(part) {
            limit.packets = Some(u32::try_from(packets).map_err(|_| wrong())?);
        } else {
            limit.bytes = Some(byte_count(&Value::Text(part.to_owned())).map_err(|_| wrong())?);
        }
    }
    if limit.packets == Some(0) || limit.bytes == Some(Bytes(0)) {
        return Err(Mismatch::new("a queue that holds nothing passes nothing", allowed));
    }
    Ok(limit)
}

/// Parses the losses of a link: a probability, a Gilbert-Elliott channel as a table of four probabilities, or the
/// numbers of the lost packets, counted from 0, individually or as `"FIRST to LAST"`.
///
/// # Errors
/// Unless the value is one of these, with at most a million packets.
pub fn loss(value: &Value) -> Result<Loss, Mismatch> {
    if let Value::Table(tree) = value {
        return gilbert_elliott(tree);
    }
    let Value::List(items) = value else {
        return ratio(value)
            .map(|share| if share == Ratio::ZERO { Loss::None } else { Loss::Bernoulli(share) });
    };
    let mut ranges = Vec::with_capacity(items.len());
    for item in items {
        ranges.push(packet_range(&item.value).ok_or_else(|| {
            Mismatch::new(
                format!("{} is neither a packet nor packets", item.value),
                "\"1 %\", or packet numbers such as [3, 17, \"20 to 29\"]",
            )
        })?);
    }
    // Checked before collecting the packets, because a short file can name a huge number of them.
    let count = |range: &RangeInclusive<u64>| (range.end() - range.start()).saturating_add(1);
    let total = ranges.iter().map(count).fold(0, u64::saturating_add);
    if total > MAX_SCRIPTED {
        return Err(Mismatch::new(
            format!("a script of {total} packets is too long"),
            format!("{MAX_SCRIPTED} packets in all"),
        ));
    }
    let mut packets: Vec<u64> = ranges.into_iter().flatten().collect();
    packets.sort_unstable();
    packets.dedup();
    Ok(Loss::Scripted(packets))
}

fn gilbert_elliott(tree: &Tree) -> Result<Loss, Mismatch> {
    const KEYS: [&str; 4] = ["good", "bad", "good-to-bad", "bad-to-good"];
    let allowed = "{ good = \"0.1 %\", bad = \"50 %\", good-to-bad = \"1 %\", bad-to-good = \"10 %\" }";
    if let Some(unknown) = tree.entries.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(Mismatch::new(format!("a channel of two states has no {unknown:?}"), allowed));
    }
    let share = |key: &str| match tree.entries.get(key) {
        Some(node) => ratio(&node.value),
        None => Err(Mismatch::new(format!("{key:?} is missing"), allowed)),
    };
    let [good, bad, good_to_bad, bad_to_good] =
        [share(KEYS[0])?, share(KEYS[1])?, share(KEYS[2])?, share(KEYS[3])?];
    Ok(Loss::GilbertElliott(GilbertElliott { good, bad, good_to_bad, bad_to_good }))
}

/// Maximum number of packets in a loss script.
const MAX_SCRIPTED: u64 = 1_000_000;

/// Parses one packet or a range of packets.
fn packet_range(value: &Value) -> Option<RangeInclusive<u64>> {
    match value {
        Value::Integer(number) => u64::try_from(*number).ok().map(|number| number..=number),
        Value::Text(text) => {
            let (first, last) = text.split_once(" to ")?;
            let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (first <= last).then_some(first..=last)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_value(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn queue_limits_are_packets_bytes_or_both() {
        assert_eq!(
            queue_limit(&text_value("126 packets, 64 KiB")).unwrap(),
            QueueLimit { packets: Some(126), bytes: Some(Bytes(65_536)) }
        );
        assert_eq!(queue_limit(&text_value("unlimited")).unwrap(), QueueLimit::default());
        assert!(queue_limit(&text_value("0 packets")).is_err());
        assert!(queue_limit(&text_value("5 ms")).is_err());
        assert_eq!(decibels(&text_value("-3.5 dB")).unwrap(), Decibels::from_millis(-3_500));
    }

    #[test]
    fn losses_are_shares_or_scripts() {
        let script = |text: &str| {
            let tree = Tree::parse("test", &format!("loss = {text}")).unwrap();
            loss(&tree.entries["loss"].value)
        };
        assert_eq!(script("\"0 %\"").unwrap(), Loss::None);
        assert_eq!(script("[7, \"2 to 4\", 3]").unwrap(), Loss::Scripted(vec![2, 3, 4, 7]));
        let channel = "{ good = \"0.1 %\", bad = \"50 %\", good-to-bad = \"1 %\", bad-to-good = \"10 %\" }";
        let ratio = |fraction| Ratio::from_fraction(fraction).unwrap();
        let expected = GilbertElliott {
            good: ratio(0.001),
            bad: ratio(0.5),
            good_to_bad: ratio(0.01),
            bad_to_good: ratio(0.1),
        };
        assert_eq!(script(channel).unwrap(), Loss::GilbertElliott(expected));
        for wrong in ["{ good = \"1 %\" }", "{ bad = 1 }", "{ god = \"1 %\" }"] {
            assert!(script(wrong).is_err(), "{wrong}");
        }
        for wrong in ["[\"4 to 2\"]", "[-1]", "[\"1 - 3\"]", "[\"0 to 99999999\"]"] {
            assert!(script(wrong).is_err(), "{wrong}");
        }
        assert_eq!(script("[1, \"4 to 2\"]").unwrap_err().what, "\"4 to 2\" is neither a packet nor packets");
    }

    #[test]
    fn a_script_names_a_million_packets_in_all() {
        let script = |ranges: &[&str]| {
            let tree = Tree::parse("test", &format!("loss = {ranges:?}")).unwrap();
            loss(&tree.entries["loss"].value)
        };
        let too_long = |ranges: &[&str]| script(ranges).unwrap_err().what;
        assert!(script(&["0 to 499999", "500000 to 999999"]).is_ok());
        assert_eq!(
            too_long(&["0 to 499999", "500000 to 1000000"]),
            "a script of 1000001 packets is too long"
        );
        // 2000 ranges of a million each would take 16 GB.
        assert_eq!(too_long(&["0 to 999999"; 2000]), "a script of 2000000000 packets is too long");
        let all = "0 to 18446744073709551615";
        assert_eq!(too_long(&[all, all]), format!("a script of {} packets is too long", u64::MAX));
    }
}
