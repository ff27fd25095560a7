//! The bundled scenarios. They are embedded so that an installed binary has them.

/// A bundled scenario.
#[derive(Clone, Copy, Debug)]
pub struct Bundled {
    /// Name on the command line.
    pub name: &'static str,
    /// Path of its file in the source tree, for messages.
    pub path: &'static str,
    /// The TOML.
    pub text: &'static str,
}

macro_rules! bundled {
    ($($name:literal),* $(,)?) => {
        &[$(Bundled {
            name: $name,
            path: concat!("scenarios/", $name, ".toml"),
            text: include_str!(concat!("../../../../scenarios/", $name, ".toml")),
        }),*]
    };
}

/// All bundled scenarios, the default first.
pub const ALL: &[Bundled] = bundled![
    "wlan-11n-150",
    "wlan-11n-300",
    "wlan-11n-600",
    "wlan-11a-54",
    "wlan-11b-11",
    "wlan-11g-54",
    "wlan-11ac-433",
    "wlan-11ac-866",
    "wlan-11ac-1300",
    "wlan-11ac-1733",
    "wlan-11ax-1200",
    "wlan-11ax-2402",
    "wlan-11be-5765",
    "wlan-11be-mlo-5-6",
    "wlan-11be-mlo-phone",
    "wlan-11be-mlo-laptop",
    "hack-2014-11n-150",
    "sora-11a-54",
    "lossy-11n-150",
    "ns3-11n-150",
    "fwp-11n-600",
    "wlan-wan",
    "wlan-web",
    "wlan-video",
    "home-wifi6",
    "office",
    "train",
    "cafe",
    "mesh-backhaul",
    "wired-10",
    "lte-slow-uplink",
    "lte-synthetic",
];

/// The bundled scenario with this name.
pub fn find(name: &str) -> Option<&'static Bundled> {
    ALL.iter().find(|bundled| bundled.name == name)
}

/// All names, for messages.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|bundled| bundled.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_listed() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scenarios");
        let mut files: Vec<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort_unstable();
        let mut listed: Vec<String> = names().map(|name| format!("{name}.toml")).collect();
        listed.sort_unstable();
        assert_eq!(files, listed);
    }
}
