//! Variants of a sweep: the same runs with different settings, and a table that compares them.

use super::axis::read_also;
use super::measure::same;
use super::schemes::read_schemes;
use tacit_scenario::InputError;
use tacit_scenario::input::{Section, numbers, text, texts};
use tacit_scenario::scheme::Scheme;

/// `[[sweep.variant]]`: differences from the sweep as drawn.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    /// Its name in claims and the table.
    pub name: String,
    pub assignments: Vec<String>,
    /// Its places on the axis, and further assignments there; empty for those of the sweep.
    pub values: Vec<f64>,
    pub also: Vec<(f64, Vec<String>)>,
    /// Its schemes; empty for those of the sweep.
    pub schemes: Vec<&'static Scheme>,
}

impl Variant {
    /// Reads `section`. `clients` is true if the axis counts clients.
    fn read(
        section: Section<'_>,
        check: impl Fn(&Section<'_>, &[f64]) -> Result<(), InputError>,
    ) -> Result<Self, InputError> {
        let x = section.section("x")?;
        let values = if x.is_present() { x.required("values", numbers)? } else { Vec::new() };
        check(&x, &values)?;
        let also = read_also(&x, &values)?;
        x.finish()?;
        let variant = Self {
            name: section.required("name", text)?,
            assignments: section.required("set", texts)?,
            values,
            also,
            schemes: if section.has("schemes") { read_schemes(&section)? } else { Vec::new() },
        };
        section.finish()?;
        Ok(variant)
    }

    /// Removes its own schemes for which `is_run` is false. Returns false if none remains.
    pub fn restrict_schemes(&mut self, is_run: impl Fn(&&'static Scheme) -> bool) -> bool {
        let has_own = !self.schemes.is_empty();
        self.schemes.retain(is_run);
        !has_own || !self.schemes.is_empty()
    }

    /// Removes its places that are not in `x`.
    pub fn restrict(&mut self, x: &[f64]) {
        if !self.values.is_empty() {
            self.values.retain(|place| x.iter().any(|other| same(*place, *other)));
        }
    }
}

/// Reads `[[sweep.variant]]`. Names must be unique.
pub(super) fn read_all(
    section: &Section<'_>,
    check: impl Fn(&Section<'_>, &[f64]) -> Result<(), InputError>,
) -> Result<Vec<Variant>, InputError> {
    let variants = section.sections("variant")?.into_iter().map(|section| Variant::read(section, &check));
    let variants: Vec<Variant> = variants.collect::<Result<_, _>>()?;
    let twice = |index: usize| variants[..index].iter().any(|before| before.name == variants[index].name);
    match (0..variants.len()).find(|index| twice(*index)) {
        Some(index) => {
            Err(section.error("variant", format!("{:?} stands there twice", variants[index].name)))
        }
        None => Ok(variants),
    }
}

/// `sweep.depends`: the number that the table of variants shows.
#[derive(Clone, Debug)]
pub(super) struct Depends {
    pub curve: String,
    /// The curve over which the gain of `curve` is computed; without one, the value itself is shown.
    pub over: Option<String>,
    /// The column, if not the plotted one.
    pub column: Option<String>,
    pub unit: String,
    /// Places on the axis; empty for all.
    pub x: Vec<f64>,
    /// Name of the sweep as drawn in the table.
    pub plain: String,
}

impl Depends {
    pub fn read(section: Section<'_>) -> Result<Option<Self>, InputError> {
        if !section.is_present() {
            return Ok(None);
        }
        let gain = section.optional("gain", text)?;
        let over = section.optional("over", text)?;
        let value = section.optional("value", text)?;
        let curve = match (gain, &over, value) {
            (Some(gain), Some(_), None) => gain,
            (None, None, Some(value)) => value,
            _ => return Err(section.error("gain", "either gain and over, or value are needed")),
        };
        let unit = if over.is_some() { "%" } else { "Mb/s" };
        let depends = Self {
            curve,
            over,
            column: section.optional("column", text)?,
            unit: section.or("unit", unit.to_owned(), text)?,
            x: section.or("x", Vec::new(), numbers)?,
            plain: section.or("plain", "as drawn".to_owned(), text)?,
        };
        section.finish()?;
        Ok(Some(depends))
    }

    /// Names of the curves it refers to.
    pub fn curves(&self) -> impl Iterator<Item = &str> {
        [Some(&self.curve), self.over.as_ref()].into_iter().flatten().map(String::as_str)
    }

    /// The column it refers to, if not the plotted one.
    pub fn column(&self) -> Option<&str> {
        self.column.as_deref()
    }
}
