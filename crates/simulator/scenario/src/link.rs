//! A link in the words of a box or a specification: Wi-Fi 6, 80 MHz, two streams, 30 ms.

use tacit_link::wifi::phy::{Mode, ModeChoice, Standard, Variant};
use tacit_packet::units::BitRate;

use crate::input::{argument, bit_rate, parse_rtt, standard};
use crate::{InputError, MAX_CLIENTS, Scenario, ScenarioError};

/// What a user says of a link, as on the command line; `None` for what is left open.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkWords<'a> {
    /// The amendment or the generation: `802.11ax`, `11ax`, `wifi6`, `6`.
    pub wifi: Option<&'a str>,
    /// The rate of data frames.
    pub rate: Option<&'a str>,
    /// The channel width.
    pub width: Option<&'a str>,
    /// Spatial streams.
    pub streams: Option<u8>,
    /// Round-trip time without queues.
    pub rtt: Option<&'a str>,
    /// Clients that upload: a number, or `all`.
    pub uploads: Option<&'a str>,
}

impl LinkWords<'_> {
    /// The first word given that describes the link itself.
    pub fn describes(&self) -> Option<&'static str> {
        let words = [
            ("--wifi", self.wifi.is_some()),
            ("--rate", self.rate.is_some()),
            ("--width", self.width.is_some()),
            ("--streams", self.streams.is_some()),
        ];
        words.into_iter().find_map(|(word, is_given)| is_given.then_some(word))
    }

    /// The scenario and the assignments that make this link: `scenario` with what is said beside it, or the nearest bundled
    /// one; `usual` where neither is named. Of the clients, the first upload; `clients` is their number, if it is not the
    /// scenario's.
    ///
    /// # Errors
    /// If a value is not allowed, a link is described beside a scenario, or the scenario cannot be loaded.
    pub fn scenario(
        &self,
        scenario: Option<&str>,
        usual: &str,
        clients: Option<u32>,
    ) -> Result<(String, Vec<String>), ScenarioError> {
        let (name, mut set) = match (scenario, self.describes()) {
            (Some(name), Some(word)) => {
                let what = format!("describes a link beside the scenario {name}");
                return Err(InputError::new(word, what)
                    .allowed("one of them; --set wifi.rate=… changes a scenario's link")
                    .into());
            }
            (None, Some(_)) => self.nearest()?,
            (named, None) => (named.unwrap_or(usual).to_owned(), Vec::new()),
        };
        if let Some(rtt) = self.rtt {
            let rtt = parse_rtt(rtt)?;
            set.push(format!("wired.delay={} us", rtt.as_micros() / 2));
        }
        if let Some(uploads) = self.uploads {
            set.push(Self::uploads(uploads, &name, clients)?);
        }
        Ok((name, set))
    }

    /// The bundled scenario whose rate is nearest, and what makes it this link.
    fn nearest(&self) -> Result<(String, Vec<String>), InputError> {
        let standard = self.wifi.map_or(Ok(Standard::N), |wifi| argument("--wifi", wifi, standard))?;
        let rate = self.rate.map(|rate| argument("--rate", rate, bit_rate)).transpose()?;
        let width_mhz = self.width.map(width_mhz).transpose()?;
        let choice = ModeChoice { rate, streams: self.streams, width_mhz, ..ModeChoice::default() };
        let mode = match rate {
            Some(_) => Mode::choose(standard, Variant::for_standard(standard), choice)
                .map_err(|unknown| InputError::new("--rate", unknown.what()).allowed(unknown.rates()))?,
            None => fastest(standard, choice)?,
        };
        let name = scenario_for(standard, mode.rate());
        // A rate that was typed stays as typed; others have the 0.1 Mb/s that scenarios have.
        let tabled = BitRate::from_bps((mode.rate().as_bps() + 50_000) / 100_000 * 100_000);
        let typed = self.rate.map_or_else(|| tabled.to_string(), str::to_owned);
        let mut set = vec![format!("wifi.rate={typed}")];
        if let Some(streams) = self.streams {
            set.push(format!("wifi.streams={streams}"));
        }
        if let Some(width_mhz) = width_mhz {
            set.push(format!("wifi.channel-width={width_mhz} MHz"));
        }
        Ok((name.to_owned(), set))
    }

    fn uploads(uploads: &str, scenario: &str, clients: Option<u32>) -> Result<String, ScenarioError> {
        let all = match clients {
            Some(clients) => clients,
            None => {
                let scenario = Scenario::load(scenario, &[])?;
                scenario.compare.clients.iter().copied().max().unwrap_or(scenario.clients)
            }
        };
        let number = match uploads {
            "all" => all,
            number => {
                number.parse().ok().filter(|number| (1..=MAX_CLIENTS).contains(number)).ok_or_else(|| {
                    InputError::new("--uploads", format!("{number:?} is no number of clients"))
                        .allowed(format!("1 to {MAX_CLIENTS}, or all"))
                })?
            }
        };
        if number >= all {
            return Ok("traffic.kind=upload".to_owned());
        }
        let listed = |clients: std::ops::RangeInclusive<u32>| {
            clients.map(|client| client.to_string()).collect::<Vec<_>>().join(",")
        };
        Ok(format!(
            "flow=[{{kind=\"upload\",client=[{}]}},{{kind=\"download\",client=[{}]}}]",
            listed(1..=number),
            listed(number + 1..=all)
        ))
    }
}

/// The mode with the highest rate that fits, with 80 MHz and two streams, or the widest and most below, where nothing is
/// said: those of most phones and laptops.
fn fastest(standard: Standard, choice: ModeChoice) -> Result<Mode, InputError> {
    let modes = Mode::fitting(standard, Variant::for_standard(standard), choice);
    let usual = |mode: &&Mode| {
        (choice.width_mhz.is_some() || mode.width_mhz <= 80)
            && (choice.streams.is_some() || mode.streams <= 2)
    };
    modes.iter().filter(usual).max_by_key(|mode| mode.rate()).copied().ok_or_else(|| {
        InputError::new("--wifi", format!("{} has no {choice}", standard.name()))
            .allowed("a --width and --streams that it has")
    })
}

/// A channel width in MHz.
fn width_mhz(text: &str) -> Result<u16, InputError> {
    let number = text.trim().trim_end_matches("MHz").trim();
    number.parse().map_err(|_| {
        InputError::new("--width", format!("{text:?} is no channel width"))
            .allowed("20, 40, 80, 160 or 320 MHz")
    })
}

/// The bundled scenario whose rate in `standard` is nearest to `rate`.
pub fn scenario_for(standard: Standard, rate: BitRate) -> &'static str {
    let known: &[(u64, &str)] = match standard {
        Standard::A => &[(54, "wlan-11a-54")],
        Standard::B => &[(11, "wlan-11b-11")],
        Standard::G => &[(54, "wlan-11g-54")],
        Standard::N => &[(150, "wlan-11n-150"), (300, "wlan-11n-300"), (600, "wlan-11n-600")],
        Standard::Ac => &[
            (433, "wlan-11ac-433"),
            (867, "wlan-11ac-866"),
            (1_300, "wlan-11ac-1300"),
            (1_733, "wlan-11ac-1733"),
        ],
        Standard::Ax => &[(1_201, "wlan-11ax-1200"), (2_402, "wlan-11ax-2402")],
        Standard::Be => &[(5_765, "wlan-11be-5765")],
    };
    let apart = |mbps: u64| BitRate::from_mbps(mbps).as_bps().abs_diff(rate.as_bps());
    let nearest = known.iter().min_by_key(|(mbps, _)| apart(*mbps));
    nearest.map(|known| known.1).expect("every standard has a scenario")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(words: LinkWords<'_>, clients: u32) -> (Scenario, Vec<String>) {
        let (name, set) = words.scenario(None, "wlan-11n-150", Some(clients)).unwrap();
        (Scenario::load(&name, &set).unwrap(), set)
    }

    #[test]
    fn a_link_in_the_words_of_a_box_is_a_scenario() {
        let words = LinkWords {
            wifi: Some("6"),
            width: Some("80MHz"),
            streams: Some(2),
            rtt: Some("30ms"),
            uploads: Some("1"),
            ..LinkWords::default()
        };
        let (built, set) = scenario(words, 3);
        let wifi = built.wifi.as_ref().unwrap();
        let mode = wifi.mode;
        assert_eq!(
            (wifi.bss.standard, mode.width_mhz, mode.streams, mode.mcs),
            (Standard::Ax, 80, 2, Some(11))
        );
        assert_eq!(built.round_trip().as_millis(), 30);
        assert!(set.contains(&"wifi.rate=1201Mbps".to_owned()), "as the scenario has it: {set:?}");
        let ups =
            built.setup(3, 1).unwrap().flows.iter().filter(|flow| flow.sink == Scenario::SERVER).count();
        assert_eq!(ups, 1, "{set:?}");
        let (all, _) = scenario(LinkWords { uploads: Some("all"), ..LinkWords::default() }, 3);
        assert_eq!(all.name, "wlan-11n-150");
        assert!(all.setup(3, 1).unwrap().flows.iter().all(|flow| flow.sink == Scenario::SERVER));
    }

    #[test]
    fn generations_and_marketed_rates_are_understood() {
        for (wifi, expected) in [
            ("wifi6", Standard::Ax),
            ("Wi-Fi 6E", Standard::Ax),
            ("11ax", Standard::Ax),
            ("802.11AX", Standard::Ax),
            ("5", Standard::Ac),
            ("wifi7", Standard::Be),
            ("n", Standard::N),
        ] {
            let (built, _) = scenario(LinkWords { wifi: Some(wifi), ..LinkWords::default() }, 1);
            assert_eq!(built.wifi.unwrap().bss.standard, expected, "{wifi}");
        }
        for (wifi, rate, kbps) in [
            ("11ax", "1200Mbps", 1_201_000),
            ("11ac", "867Mbps", 866_700),
            ("be", "5760Mbps", 5_764_700),
            ("ac", "433Mbps", 433_300),
        ] {
            let words = LinkWords { wifi: Some(wifi), rate: Some(rate), ..LinkWords::default() };
            let rate = scenario(words, 1).0.wifi.unwrap().mode.rate();
            assert_eq!((rate.as_bps() + 50_000) / 100_000 * 100, kbps, "{wifi}");
        }
    }

    #[test]
    fn wrong_words_say_what_is_right() {
        let error = |words: LinkWords<'_>, scenario| {
            words.scenario(scenario, "wlan-11n-150", None).unwrap_err().to_string()
        };
        let wifi = LinkWords { wifi: Some("8"), ..LinkWords::default() };
        assert!(error(wifi, None).starts_with("--wifi: unknown \"8\""), "{}", error(wifi, None));
        let beside = LinkWords { streams: Some(2), ..LinkWords::default() };
        assert!(error(beside, Some("wired-10")).contains("describes a link beside the scenario wired-10"));
        let wide = LinkWords { width: Some("wide"), ..LinkWords::default() };
        assert!(
            error(wide, None).contains("\"wide\" is no channel width; allowed: 20, 40, 80, 160 or 320 MHz")
        );
        let none = LinkWords { width: Some("160 MHz"), ..LinkWords::default() };
        assert!(error(none, None).contains("802.11n has no 160 MHz"), "{}", error(none, None));
        let uploads = LinkWords { uploads: Some("some"), ..LinkWords::default() };
        assert!(error(uploads, None).contains("\"some\" is no number of clients"));
    }
}
