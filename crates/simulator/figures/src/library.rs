//! The bundled figure files. They are embedded so that an installed binary has them.

/// A figure file.
#[derive(Clone, Copy, Debug)]
pub struct Bundled {
    /// Name on the command line: paper and figure.
    pub id: &'static str,
    /// Path of its file in the source tree, for messages.
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

/// All bundled figures, in the order in which they are shown.
pub const ALL: &[Bundled] = bundled![
    "hack/fig1a",
    "hack/fig1b",
    "hack/slides-utilization",
    "hack/fig5a",
    "hack/fig5b",
    "hack/fig6",
    "hack/fig7",
    "hack/fig8",
    "hack/fig9",
    "hack/fig9-two-clients",
    "hack/table1",
    "hack/table2",
    "hack/table3",
    "hack/crosscheck",
    "hack/lateness",
    "hack/fig10",
    "hack/fig11",
    "hack/fig12",
    "hack/txop",
    "hack/echo",
    "hack/aifs",
    "hack/aifs-split",
    "hack/upload",
    "hack/wan",
    "hack/ax",
    "hack/rule",
    "hack/ax-clients",
    "hack/ofdma",
    "hack/cascade",
    "hack/ofdma-count",
    "hack/mu-edca",
    "hack/ofdma-cells",
    "hack/forecast",
    "hack/hidden",
    "hack/live",
    "mlo/window",
    "mlo/other-link",
    "mlo/modes",
    "mlo/reorder",
    "tack/fig3",
    "tack/fig5a",
    "tack/fig5b",
    "tack/fig6a",
    "tack/fig7",
    "tack/fig7-variants",
    "tack/fig8",
    "tack/fig8b",
    "tack/fig9a",
    "tack/fig9b",
    "tack/fig10a",
    "tack/fig10b",
    "tack/fig11",
    "tack/fig13",
    "tack/fig14",
    "tack/fig15",
    "tack/buffer",
    "tack/queue",
    "tack/slow-uplink",
    "tack/sharing",
    "tack/today",
    "tack/crossings",
    "tack/harm-buffers",
    "tack/harm-cubic",
    "tack/harm-jitter",
    "tack/harm-sharing",
    "tack/harm-short",
    "tack/harm-short-wifi",
    "tack/harm-uploads",
    "tack/controllers",
    "tack/live",
    "tack/live-11ac",
    "tack/live-stations",
    "tack/live-mobile",
    "tack/live-harm",
    "tack/live-uploads",
    "tack/baselines",
    "tack/baselines-11ac",
    "rre/slow-uplink",
    "rre/fetches",
    "rre/come-and-go",
    "rre/utilisation",
    "rre/normal",
    "rre/concurrent-upload",
    "rre/fluctuation",
    "rre/oscillation",
    "rre/friendliness",
    "rre/rsfc",
    "rre/places",
    "rre/traces",
    "rre/target",
    "rre/wifi",
    "rre/live",
    "fwp/fig7",
    "fwp/fig8",
    "fwp/fig9",
    "fwp/fig10",
    "fwp/fig11",
    "fwp/knowledge",
    "fwp/repair",
    "fwp/pages",
    "fwp/live",
    "baselines/11n",
    "baselines/11ac",
    "baselines/fastack",
    "baselines/l4s",
    "quic/quinn",
    "thin/grid",
    "thin/upload",
    "thin/wifi",
    "validation/model-11a",
    "validation/model-11ac",
    "validation/model-11ax-mu",
    "validation/model-11n",
    "validation/ns3-11a",
    "validation/ns3-11n",
    "validation/ns3-11n-queue",
    "validation/ns3-11ax",
    "validation/ns3-11ax-mu",
    "validation/ns3-11be-mlo",
    "validation/ns3-11ax-mix",
    "validation/minstrel",
];

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_file_is_listed_and_says_what_is_allowed() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../figures");
        let mut files = Vec::new();
        for paper in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap()) {
            let name = paper.file_name().into_string().unwrap();
            // Next to the papers' directories is the list of figures without a file.
            if paper.path().is_file() {
                assert_eq!(name, "later.toml");
                continue;
            }
            for file in fs::read_dir(paper.path()).unwrap() {
                let file = file.unwrap().file_name().into_string().unwrap();
                files.push(format!("{name}/{}", file.trim_end_matches(".toml")));
            }
        }
        files.sort_unstable();
        let mut listed: Vec<&str> = ALL.iter().map(|bundled| bundled.id).collect();
        listed.sort_unstable();
        assert_eq!(files, listed);
        assert_eq!(crate::all().unwrap().len(), ALL.len());
    }
}
