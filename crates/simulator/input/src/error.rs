//! An error in user input, formatted as one line.

use std::fmt;
use std::ops::RangeInclusive;

/// An error in a file or argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// `FILE:LINE`, or the argument.
    pub place: String,
    /// Description of the error.
    pub what: String,
    /// The allowed values, if they can be listed briefly.
    pub allowed: Option<String>,
}

impl InputError {
    /// Creates an error at `place`.
    pub fn new(place: impl fmt::Display, what: impl Into<String>) -> Self {
        Self { place: place.to_string(), what: what.into(), allowed: None }
    }

    /// Refuses a `value` of the argument `place` that is not in `range`.
    ///
    /// # Errors
    /// If it is not in the range.
    pub fn check_range<T: Copy + PartialOrd + fmt::Display>(
        place: &str,
        value: T,
        range: RangeInclusive<T>,
    ) -> Result<(), Self> {
        let (least, most) = range.into_inner();
        if (least..=most).contains(&value) {
            return Ok(());
        }
        Err(Self::new(place, format!("{value} is out of range")).allowed(format!("{least} to {most}")))
    }

    /// Adds the allowed values to this error.
    #[must_use]
    pub fn allowed(mut self, allowed: impl Into<String>) -> Self {
        self.allowed = Some(allowed.into());
        self
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)?;
        match &self.allowed {
            Some(allowed) => write!(f, "; allowed: {allowed}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for InputError {}
