//! Which counts of clients a command runs: one answer for all commands and for Python.

use crate::error::InputError;
use crate::{MAX_CLIENTS, Scenario};

impl Scenario {
    /// Counts of a comparison, ascending: `asked`, or the scenario's own where nothing is asked for.
    ///
    /// # Errors
    /// Where a count is not allowed, or a `[[flow]]` names a client that no run has.
    pub fn compared_counts(&self, asked: &[u32]) -> Result<Vec<u32>, InputError> {
        let mut counts = if asked.is_empty() { self.compare.clients.clone() } else { asked.to_vec() };
        counts.sort_unstable();
        counts.dedup();
        self.check_counts(&counts)?;
        Ok(counts)
    }

    /// Clients of a single run: `asked`, or the scenario's own.
    ///
    /// # Errors
    /// As [`Scenario::compared_counts`].
    pub fn run_count(&self, asked: Option<u32>) -> Result<u32, InputError> {
        let count = asked.unwrap_or(self.clients);
        self.check_counts(&[count])?;
        Ok(count)
    }

    fn check_counts(&self, counts: &[u32]) -> Result<(), InputError> {
        for count in counts {
            InputError::check_range("--clients", *count, 1..=MAX_CLIENTS)?;
        }
        let most = counts.iter().copied().max().unwrap_or(0);
        for (number, flow) in (1..).zip(&self.flows) {
            if let Some(client) =
                flow.clients.iter().flatten().copied().max().filter(|client| *client >= most)
            {
                let what =
                    format!("[[flow]] {number} is of client {}, and no run has more than {most}", client + 1);
                return Err(InputError::new(&self.name, what)
                    .allowed(format!("--clients {0}, or clients.count = {0} in the scenario", client + 1)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, assignments: &[&str]) -> Scenario {
        let assignments: Vec<String> = assignments.iter().map(|&text| text.to_owned()).collect();
        Scenario::parse("own.toml", text, &assignments).unwrap()
    }

    const BASE: &str = "base = \"wlan-11n-150\"\n";

    #[test]
    fn a_scenario_with_a_count_is_compared_at_that_count() {
        let three = format!("{BASE}[clients]\ncount = 3\n");
        let listed = format!("{BASE}[[client]]\ncount = 3\n");
        for (text, set, counts, single) in [
            (BASE, &[][..], &[1, 10][..], 1),
            (&three, &[], &[3], 3),
            (&listed, &[], &[3], 3),
            (BASE, &["clients.count=3"], &[3], 3),
            (BASE, &["client=[{count=3}]"], &[3], 3),
            (&three, &["clients.count=4"], &[4], 4),
            (&three, &["compare.clients=[1, 3]"], &[1, 3], 3),
            ("base = \"wlan-11a-54\"\n[clients]\ncount = 5\n", &[], &[5], 5),
            ("base = \"wlan-11a-54\"\n", &["clients.count=5"], &[5], 5),
        ] {
            let scenario = parse(text, set);
            assert_eq!(scenario.compared_counts(&[]).unwrap(), counts, "{text} {set:?}");
            assert_eq!(scenario.run_count(None).unwrap(), single, "{text} {set:?}");
            assert_eq!(scenario.compared_counts(&[7, 2, 7]).unwrap(), [2, 7]);
        }
    }

    #[test]
    fn a_flow_of_a_client_that_no_run_has_is_refused() {
        let text = format!("{BASE}[[flow]]\nclient = [3]\nkind = \"upload\"\n[[flow]]\nclient = 1\n");
        let scenario = parse(&text, &[]);
        assert!(scenario.compared_counts(&[1, 3]).is_ok());
        for error in [scenario.compared_counts(&[1, 2]).unwrap_err(), scenario.run_count(None).unwrap_err()] {
            let error = error.to_string();
            assert!(error.contains("[[flow]] 1 is of client 3, and no run has more than"), "{error}");
            assert!(error.contains("clients.count = 3"), "{error}");
        }
    }
}
