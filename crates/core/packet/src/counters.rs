//! A macro that declares counters.

/// Declares a struct of monotonic counters, with `since` (a difference, field by field) and `plus` (a sum).
/// Fields under `peaks` are never reset: a difference has the later one, a sum the larger. Fields under `unrecorded` are no
/// part of records, which serde writes: `recorded` gives the counters without them.
///
/// ```
/// tacit_packet::counters! {
///     /// What a queue did.
///     pub struct Counters {
///         /// Packets it took.
///         taken: u64,
///     }
///     peaks {
///         /// Most packets that waited at once.
///         waiting_max: u64,
///     }
/// }
///
/// let before = Counters { taken: 3, waiting_max: 2 };
/// let after = Counters { taken: 10, waiting_max: 4 };
/// assert_eq!(after.since(&before), Counters { taken: 7, waiting_max: 4 });
/// assert_eq!(after.plus(&before), Counters { taken: 13, waiting_max: 4 });
/// ```
#[macro_export]
macro_rules! counters {
    (
        $(#[$about:meta])*
        $visible:vis struct $name:ident { $($(#[$doc:meta])* $field:ident: $kind:ty,)* }
        $(peaks { $($(#[$peak_doc:meta])* $peak:ident: $peak_kind:ty,)* })?
        $(unrecorded { $($(#[$hidden_doc:meta])* $hidden:ident: $hidden_kind:ty,)* })?
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        $visible struct $name {
            $($(#[$doc])* pub $field: $kind,)*
            $($($(#[$peak_doc])* pub $peak: $peak_kind,)*)?
            $($($(#[$hidden_doc])* #[cfg_attr(feature = "serde", serde(skip))] pub $hidden: $hidden_kind,)*)?
        }

        $(impl $name {
            /// The counters with all unrecorded fields at their default, which equal the counters that are read back
            /// from a record.
            #[must_use]
            pub fn recorded(&self) -> Self {
                Self { $($hidden: Default::default(),)* ..*self }
            }
        })?

        impl $name {
            /// `self - earlier`, field by field.
            #[must_use]
            pub fn since(&self, earlier: &Self) -> Self {
                Self {
                    $($field: self.$field - earlier.$field,)*
                    $($($peak: self.$peak,)*)?
                    $($($hidden: self.$hidden - earlier.$hidden,)*)?
                }
            }

            /// `self + other`, field by field.
            #[must_use]
            pub fn plus(&self, other: &Self) -> Self {
                Self {
                    $($field: self.$field + other.$field,)*
                    $($($peak: self.$peak.max(other.$peak),)*)?
                    $($($hidden: self.$hidden + other.$hidden,)*)?
                }
            }
        }
    };
}
