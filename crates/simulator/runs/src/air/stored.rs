//! Parts of a PPDU as JSON.

use tacit_link::wifi::{LinkId, StationId};
use tacit_packet::units::{BitRate, Duration, FlowId, Instant};

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A value that is one number.
pub(super) trait Number: Sized {
    type Raw;

    fn to_raw(&self) -> Self::Raw;

    fn from_raw(raw: Self::Raw) -> Self;
}

macro_rules! numbers {
    ($($kind:ident: $raw:ty, |$value:ident| $to:expr, $from:expr;)*) => {$(
        impl Number for $kind {
            type Raw = $raw;

            fn to_raw(&self) -> $raw {
                let $value = self;
                $to
            }

            fn from_raw(raw: $raw) -> Self {
                $from(raw)
            }
        }
    )*};
}

numbers! {
    LinkId: u8, |link| link.0, LinkId;
    StationId: u16, |station| station.0, StationId;
    FlowId: u32, |flow| flow.0, FlowId;
    BitRate: u64, |rate| rate.as_bps(), BitRate::from_bps;
    Duration: u64, |time| time.as_nanos(), Duration::from_nanos;
    Instant: u64, |at| at.as_nanos(), Instant::from_nanos;
}

impl<T: Number> Number for Option<T> {
    type Raw = Option<T::Raw>;

    fn to_raw(&self) -> Self::Raw {
        self.as_ref().map(T::to_raw)
    }

    fn from_raw(raw: Self::Raw) -> Self {
        raw.map(T::from_raw)
    }
}

/// A [`Number`] as such.
pub(super) mod raw {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Number;

    pub fn serialize<T: Number<Raw: Serialize>, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
        value.to_raw().serialize(to)
    }

    pub fn deserialize<'de, T: Number<Raw: Deserialize<'de>>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<T, D::Error> {
        T::Raw::deserialize(from).map(T::from_raw)
    }
}

/// An access category as its short name; the default if it was not recorded.
pub(super) mod category {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use tacit_link::wifi::AccessCategory;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    pub fn serialize<S: Serializer>(category: &AccessCategory, to: S) -> Result<S::Ok, S::Error> {
        category.name().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<AccessCategory, D::Error> {
        let name = String::deserialize(from)?;
        Ok(AccessCategory::ALL.into_iter().find(|category| category.name() == name).unwrap_or_default())
    }
}

/// For each MPDU whether it arrived, as their number and the indexes, from 0, of those that did not.
pub(super) mod mpdus {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// The most of a PPDU, those of EHT (802.11be).
    const MOST: usize = 1024;

    #[derive(Serialize, Deserialize)]
    struct Mpdus {
        mpdus: usize,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lost: Vec<usize>,
    }

    pub fn serialize<S: Serializer>(arrived: &[bool], to: S) -> Result<S::Ok, S::Error> {
        let lost = arrived.iter().zip(0..).filter(|(arrived, _)| !**arrived).map(|(_, index)| index);
        Mpdus { mpdus: arrived.len(), lost: lost.collect() }.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<bool>, D::Error> {
        let Mpdus { mpdus, lost } = Mpdus::deserialize(from)?;
        if mpdus > MOST || lost.iter().any(|lost| *lost >= mpdus) {
            return Err(D::Error::custom("no PPDU has as many MPDUs"));
        }
        Ok((0..mpdus).map(|index| !lost.contains(&index)).collect())
    }
}
