//! Some clients with a scheme, the others with the baseline: `tack=1,stock=9`.

use tacit_scenario::scheme::{self, Role, Scheme};
use tacit_scenario::{InputError, MAX_CLIENTS};

use super::Options;

/// A scheme, how many clients use it, and how many keep the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    scheme: &'static str,
    adopters: u32,
    others: u32,
}

impl Mix {
    /// Parses `SCHEME=COUNT,stock=COUNT`, in any order. `place` is used in messages.
    ///
    /// # Errors
    /// If it is not one scheme beside the baseline, or a count is not allowed.
    pub fn parse(place: &str, text: &str) -> Result<Self, InputError> {
        let wrong = |what: String| {
            InputError::new(place, what).allowed(
                "one scheme beside stock, such as tack=1,stock=9; --set says what stock is: tcp.congestion=bbr",
            )
        };
        let mut found: [Option<(&'static Scheme, u32)>; 2] = [None, None];
        for part in text.split(',') {
            let (name, count) =
                part.split_once('=').ok_or_else(|| wrong(format!("{part:?} has no count of clients")))?;
            let scheme = scheme::find(place, name.trim())?;
            let count = count.trim();
            let count = count
                .parse::<u32>()
                .ok()
                .filter(|count| *count <= MAX_CLIENTS)
                .ok_or_else(|| wrong(format!("{count:?} is no count of clients")))?;
            let slot = &mut found[usize::from(scheme.role == Role::Baseline)];
            if scheme.role == Role::Bound || slot.is_some() {
                return Err(wrong(format!("{text:?} has no room for {}", scheme.name)));
            }
            *slot = Some((scheme, count));
        }
        let [Some((scheme, adopters)), others] = found else {
            return Err(wrong(format!("{text:?} names no scheme to switch to")));
        };
        let others = others.map_or(0, |(_, others)| others);
        InputError::check_range(place, adopters + others, 1..=MAX_CLIENTS)?;
        Ok(Self { scheme: scheme.name, adopters, others })
    }

    /// The assignment that makes it.
    pub fn assignment(&self) -> String {
        format!("clients.adopters={}", self.adopters)
    }

    /// `options` for its clients and its scheme, beside the baseline, without its assignment.
    #[must_use]
    pub fn apply(&self, options: Options) -> Options {
        let stock = Scheme::with_role(Role::Baseline).name;
        Options {
            clients: vec![self.adopters + self.others],
            schemes: [stock, self.scheme].map(str::to_owned).to_vec(),
            ..options
        }
    }
}

#[cfg(test)]
mod tests {
    use tacit_runs::sweep::Control;

    use super::super::{Comparison, compare};
    use super::*;

    #[test]
    fn one_scheme_stands_beside_stock() {
        let mix = |text: &str| Mix::parse("--mix", text);
        let known = Mix { scheme: "tack", adopters: 1, others: 9 };
        assert_eq!(mix("tack=1,stock=9").unwrap(), known);
        assert_eq!(mix("stock=9, tack=1").unwrap(), known);
        assert_eq!(mix("tack=3").unwrap().others, 0);
        for (text, expected) in [
            ("tack", "\"tack\" has no count of clients"),
            ("tack=one", "\"one\" is no count of clients"),
            ("stock=9", "names no scheme to switch to"),
            ("tack=1,bbr=2,stock=3", "has no room for bbr"),
            ("udp=1,stock=1", "has no room for udp"),
            ("tuck=1,stock=9", "did you mean \"tack\"?"),
            ("tack=0,stock=0", "0 is out of range"),
            ("tack=1000,stock=1", "1001 is out of range"),
        ] {
            let error = mix(text).unwrap_err().to_string();
            assert!(error.starts_with("--mix: ") && error.contains(expected), "{text}: {error}");
        }
    }

    fn compared(text: &str, change: impl FnOnce(&mut Options)) -> Comparison {
        let mix = Mix::parse("--mix", text).unwrap();
        let mut options =
            mix.apply(Options { scenario: "wlan-11n-150".into(), seeds: Some(2), ..Options::default() });
        options.assignments =
            vec!["run.duration=3 s".into(), "run.measure-from=1 s".into(), mix.assignment()];
        change(&mut options);
        compare(&options, Control::unattended()).unwrap()
    }

    /// TCP/HACK without an ACK of its own in one of two clients: it gains, and so does the other, from the air that its
    /// ACKs do not take any more.
    #[test]
    fn who_switches_and_the_others_are_told_apart() {
        let comparison = compared("hack-batch=1,stock=1", |_| {});
        let [stock, hack] = &comparison.rows[..] else { panic!("{:?}", comparison.rows) };
        assert_eq!((stock.clients, hack.clients, hack.means.adopters), (2, 2, Some(1.0)));
        assert_eq!((stock.adopter_gain_over_stock, stock.other_gain_over_stock), (Some(0.0), Some(0.0)));
        let sum = |row: &super::super::Row| {
            row.means.adopter_goodput_bps.unwrap() + row.means.other_goodput_bps.unwrap()
        };
        for row in [stock, hack] {
            assert!((sum(row) - row.goodput_bps_mean).abs() < 1.0, "{row:?}");
        }
        let gain = hack.adopter_gain_over_stock.unwrap();
        let adopters_gain =
            hack.means.adopter_goodput_bps.unwrap() / stock.means.adopter_goodput_bps.unwrap() - 1.0;
        assert!((gain - adopters_gain).abs() < 1e-9, "{gain} {adopters_gain}");
        // Half as many ACKs ride as with two clients.
        let whole = compared("hack-batch=2,stock=0", |_| {});
        let acks = |comparison: &Comparison| comparison.rows[1].means.tcp_acks_on_air_per_s.unwrap();
        assert!(acks(&comparison) > 0.2 * stock.means.tcp_acks_on_air_per_s.unwrap(), "{comparison:?}");
        assert!(acks(&whole) < 0.1 * stock.means.tcp_acks_on_air_per_s.unwrap(), "{whole:?}");
        assert_eq!(whole.rows[1].means.other_goodput_bps, None);
        let text = comparison.to_text(Some(80));
        assert!(text.contains("1 of 2 clients switches, the others keep stock"), "{text}");
        assert!(text.starts_with("2 clients, 1 of them with hack-batch: it has "), "{text}");
        let directory = tempfile::tempdir().unwrap();
        let page =
            std::fs::read_to_string(crate::report::write(&comparison, directory.path()).unwrap()).unwrap();
        assert!(page.contains("<h2>Who switches</h2><p>1 of 2 clients switches, the others keep stock.</p>"));
        let before = super::super::text::adoption_table(&[hack]).parts().1[0][2].clone();
        assert!(before.ends_with('%') && page.contains(&format!("<td>{before}</td>")), "{before}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn nobody_and_everybody_are_the_runs_of_stock_and_of_the_scheme() {
        let goodput = |comparison: &Comparison| comparison.rows[1].goodput_bps_mean;
        let all = compared("tcp-l8=2,stock=0", |_| {});
        let alike = compared("tcp-l8=2,stock=0", |options| options.assignments.truncate(2));
        assert_eq!(goodput(&all).to_bits(), goodput(&alike).to_bits());
        let none = compared("tcp-l8=0,stock=2", |_| {});
        assert_eq!(none.rows[1].goodput_bps_mean.to_bits(), none.rows[0].goodput_bps_mean.to_bits());
    }

    #[test]
    fn what_all_share_is_not_adopted_by_some() {
        let options = Mix::parse("--mix", "cake-ack-filter=1,stock=1").unwrap();
        let assignments = vec![options.assignment()];
        let options =
            options.apply(Options { scenario: "wlan-11n-150".into(), assignments, ..Options::default() });
        let error = compare(&options, Control::unattended()).unwrap_err().to_string();
        let expected = "cake-ack-filter changes the access point or a link, which all clients share";
        assert!(error.contains(expected), "{error}");
    }
}
