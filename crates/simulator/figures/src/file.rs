//! Reads a figure file.

use super::figure::{Claim, Figure, Gain, Plot, VariantNames};
use super::kinds;
use super::measure;
use super::table::Table;
use super::variant::Depends;
use tacit_scenario::InputError;
use tacit_scenario::input::{Section, Tree, flag, text, texts};

impl Figure {
    /// Parses a figure file. `source` names it in messages.
    ///
    /// # Errors
    /// If the text is not TOML, or contains something that is not allowed.
    pub fn parse(id: &str, source: &str, toml: &str) -> Result<Self, InputError> {
        let tree = Tree::parse(source, toml)?;
        let root = Section::root(source, &tree).described_in("docs/use/figure.md");
        let kind = kinds::read(&root)?;
        let source = root.or("source", "paper".to_owned(), text)?;
        let read = |claim| Claim::read(claim, &source, |measure| kind.read_measure(measure));
        let claims: Vec<Claim> = root.sections("claim")?.into_iter().map(read).collect::<Result<_, _>>()?;
        let twice = |at: &usize| claims[..*at].iter().any(|before| before.text == claims[*at].text);
        if let Some(at) = (0..claims.len()).find(twice) {
            return Err(root.error("claim", format!("{:?} stands there twice", claims[at].text)));
        }
        let figure = Self {
            id: id.to_owned(),
            title: root.required("title", text)?,
            paper: root.optional("paper", text)?,
            note: root.optional("note", text)?,
            plot: Plot::read(root.section("plot")?)?,
            table: Table::read(root.section("table")?)?,
            kind,
            claims,
        };
        figure.check_names(&root)?;
        root.finish()?;
        Ok(figure)
    }

    /// Checks that claims, tables and panels refer only to curves and columns of the figure.
    fn check_names(&self, root: &Section<'_>) -> Result<(), InputError> {
        let Some(names) = self.kind.curve_names() else { return Ok(()) };
        let swept = |name: &str| {
            let known = names.iter().any(|known| known == name);
            if known {
                Ok(())
            } else {
                Err(root.error("claim", format!("{name:?} is measured, but not swept")))
            }
        };
        let variants = self.kind.variants();
        let unknown = |name: &str| {
            let known: Vec<&str> = variants.iter().map(|variant| variant.name).collect();
            root.error("claim", format!("no variant {name:?}")).allowed(known.join(", "))
        };
        let in_variant = |variant: &VariantNames<'_>, measure: &measure::Measure| {
            let Some(swept_there) = &variant.curves else { return measure.curves().try_for_each(swept) };
            match measure.curves().find(|curve| !swept_there.iter().any(|known| known == curve)) {
                Some(curve) => {
                    let what = format!("{curve:?} is not swept in variant {:?}", variant.name);
                    Err(root.error("claim", what))
                }
                None => Ok(()),
            }
        };
        for measure in self.measures() {
            if let Some(name) = measure.over_variant() {
                let mut comparable = variants.iter().filter(|variant| variant.curves.is_some());
                let over = comparable.find(|variant| variant.name == name);
                in_variant(over.ok_or_else(|| unknown(name))?, measure)?;
            }
            match measure.variant() {
                Some(name) => {
                    let variant = variants.iter().find(|variant| variant.name == name);
                    in_variant(variant.ok_or_else(|| unknown(name))?, measure)?;
                }
                None => measure.curves().try_for_each(swept)?,
            }
            if let [Some(places), Some(other_places)] =
                measure.variants().map(|variant| self.kind.places(variant))
                && !measure.is_within(&places, &other_places)
            {
                let what = format!("{:?} is measured at an x that is not swept", measure.curve());
                let allowed = places.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
                return Err(root.error("claim", what).allowed(allowed));
            }
        }
        if let Some(gain) = &self.plot.gain {
            [&gain.curve, &gain.over].into_iter().try_for_each(|name| swept(name))?;
        }
        let is_unknown = |name: &&String| !variants.iter().any(|variant| variant.name == **name);
        if let Some(name) = self.plot.panels.iter().find(is_unknown) {
            return Err(root.error("plot", format!("panels: no variant {name:?}")));
        }
        if self.plot.cdf && !self.kind.is_at_one_x() {
            return Err(root
                .error("plot", "cdf: not the seeds of a single x")
                .allowed("a [sweep] with one value of x"));
        }
        let depends = self.kind.depends();
        depends.into_iter().flat_map(Depends::curves).try_for_each(swept)?;
        let columns = self.columns(depends.and_then(Depends::column).into_iter());
        columns.iter().try_for_each(|name| self.kind.check_column(name, root))
    }
}

impl Plot {
    fn read(section: Section<'_>) -> Result<Self, InputError> {
        let gain = section.section("gain")?;
        let plot = Self {
            log_x: section.or("log-x", false, flag)?,
            log_y: section.or("log-y", false, flag)?,
            panels: section.or("panels", Vec::new(), texts)?,
            cdf: section.or("cdf", false, flag)?,
            gain: match gain.is_present() {
                true => Some(Gain { curve: gain.required("of", text)?, over: gain.required("over", text)? }),
                false => None,
            },
        };
        gain.finish()?;
        section.finish()?;
        Ok(plot)
    }
}

#[cfg(test)]
mod tests {
    use super::Figure;
    use crate::{Options, all, run};
    use tacit_runs::sweep::Control;

    const SWEEP: &str = include_str!("../tests/sweep.toml");

    #[test]
    fn claims_that_stand_there_twice_or_are_about_what_is_not_there_are_refused() {
        let text = SWEEP.replace("over = \"stock\"", "over = \"tcp-l8\"");
        let error = Figure::parse("x", "x.toml", &text).unwrap_err().to_string();
        assert!(error.contains("\"tcp-l8\" is measured, but not swept"), "{error}");
        let text = SWEEP.replace("UDP has no ACKs", "UDP is faster");
        let error = Figure::parse("x", "x.toml", &text).unwrap_err().to_string();
        assert!(error.contains("\"UDP is faster\" stands there twice"), "{error}");
        let text = SWEEP.replace("tcp_acks_on_air_per_s", "tcp_acks");
        assert!(Figure::parse("x", "x.toml", &text).unwrap_err().to_string().contains("is no metric"));
    }

    /// Runs of an hour would end with a claim that has no value.
    #[test]
    fn a_claim_at_an_x_that_is_not_swept_is_refused() {
        let refused = |from: &str, to: &str| {
            let text = SWEEP.replace(from, to);
            assert_ne!(text, SWEEP);
            Figure::parse("x", "x.toml", &text).unwrap_err().to_string()
        };
        let expected = "x.toml:11: claim: \"udp\" is measured at an x that is not swept; allowed: 65, 150";
        assert_eq!(refused("x = 150 }", "x = 100 }"), expected);
        assert_eq!(refused("x = 150 }", "x-from = 200 }"), expected);
        assert_eq!(refused("x = 150 }", "x = 150, over-x = 100 }"), expected);
    }

    #[test]
    fn a_figure_of_ones_own_needs_no_paper_and_no_claim() {
        let text = "title = \"mine\"\n[theory]\nfigure = \"hack/fig1b\"\n";
        let figure = Figure::parse("mine", "mine.toml", text).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let options = Options { directory: Some(directory.path().to_owned()), ..Options::default() };
        let outcome = &run(&[figure], &options, Control::unattended()).unwrap()[0];
        assert!(outcome.to_text().starts_with("mine: mine\n") && !outcome.fails(), "{outcome:?}");
        assert!(std::fs::read_to_string(outcome.svg.as_ref().unwrap()).unwrap().contains(">TCP/HACK</text>"));
        assert!(all().unwrap().iter().all(|figure| figure.paper.is_some()), "bundled ones have a source");
    }
}
