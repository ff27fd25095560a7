//! The figure files that come with the program, embedded so that an installed binary has them.

/// A figure file.
#[derive(Clone, Copy, Debug)]
pub struct Bundled {
    /// What users write: paper and figure.
    pub id: &'static str,
    /// Its file in the source tree, for messages.
    pub path: &'static str,
    /// The TOML.
    pub text: &'static str,
}

macro_rules! bundled {
    ($($id:literal),* $(,)?) => {
        &[$(Bundled {
            id: $id,
            path: concat!("figures/", $id, ".toml"),
            text: include_str!(concat!("../../../../figures/", $id, ".toml")),
        }),*]
    };
}

/// All of them, in the order they are shown.
pub const ALL: &[Bundled] = bundled![
    "hack/fig1a",
    "hack/fig1b",
    "hack/slides-utilization",
    "hack/fig9",
    "hack/fig9-two-clients",
    "hack/table1",
    "hack/table2",
    "hack/crosscheck",
    "hack/fig10",
    "hack/aifs",
    "hack/upload",
    "hack/wan",
    "tack/fig8",
    "validation/ns3-11a",
    "validation/ns3-11n",
    "validation/ns3-11n-capture",
    "validation/ns3-11n-queue",
];
