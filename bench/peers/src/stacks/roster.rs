//! Stacks with their settings, and places: what the page has rows and tables for.

/// A program that serves and fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// This one, with a stack of its own.
    Own(&'static str),
    /// quic-go, compiled from `bench/peers/go`.
    Go,
    /// A stack that compiles a TLS library of its own, from `bench/peers/rust`, and what must be installed for that.
    Cargo { stack: &'static str, needs: &'static str },
    /// A stack of `bench/peers/python/peer.py`, in a virtual environment of its own.
    Python(&'static str),
}

/// A row: a stack under one setting.
#[derive(Clone, Copy, Debug)]
pub struct Contender {
    pub name: &'static str,
    pub program: Program,
    /// Of the command line, for both ends.
    pub words: &'static [&'static str],
    /// Of TCP, in both routes.
    pub congestion: Option<&'static str>,
    /// What is set, as the page says it.
    pub setting: &'static str,
    /// A download has this part of the usual bytes: the program is slow by itself.
    pub less: u64,
}

const OWN: Contender = Contender {
    name: "",
    program: Program::Own(""),
    words: &["--windows", "own"],
    congestion: None,
    setting: "nothing",
    less: 1,
};

const fn entry(
    name: &'static str,
    stack: &'static str,
    words: &'static [&'static str],
    setting: &'static str,
) -> Contender {
    Contender { name, program: Program::Own(stack), words, setting, ..OWN }
}

const QUICHE: Program = Program::Cargo { stack: "quiche", needs: "cmake, make, a C++ compiler and libclang" };
const TQUIC: Program = Program::Cargo { stack: "tquic", needs: "cmake, make and a C++ compiler" };
const MSQUIC: Program =
    Program::Cargo { stack: "msquic", needs: "cmake, make, perl, a C++ compiler and libnuma-dev" };

const BBR: &[&str] = &["--windows", "own", "--congestion", "bbr"];
const SOCKET: &[&str] = &["--windows", "socket"];
const LARGE: &[&str] = &["--windows", "large"];

/// The rows, defaults before other settings.
pub const ROSTER: &[Contender] = &[
    Contender {
        congestion: Some("cubic"),
        ..entry("tcp", "tcp", OWN.words, "CUBIC, Linux's default; no encryption")
    },
    Contender { congestion: Some("bbr"), ..entry("tcp-bbr", "tcp", OWN.words, "BBR; no encryption") },
    entry("tack", "tack", OWN.words, "nothing"),
    entry("quinn", "quinn", OWN.words, "nothing: CUBIC"),
    entry("quinn-bbr", "quinn", BBR, "BBR"),
    entry("quinn-large", "quinn", LARGE, "windows of 64 MiB, sockets of 4 MiB"),
    entry("quinn-ack-frequency", "quinn-ack-frequency", OWN.words, "asks for an ACK per 11 packets"),
    entry("quinn-socket", "quinn", SOCKET, "the sockets of `tacit_quinn::bind`"),
    entry("tacit-quinn", "tacit-quinn", SOCKET, "`tacit_quinn::configure` and `bind`"),
    entry("noq", "noq", OWN.words, "nothing"),
    entry("noq-bbr", "noq", BBR, "BBR version 3"),
    entry("noq-ack-frequency", "noq-ack-frequency", OWN.words, "asks for an ACK per 11 packets"),
    entry("s2n", "s2n", OWN.words, "nothing: CUBIC"),
    entry("s2n-bbr", "s2n", BBR, "BBR version 2"),
    Contender { program: Program::Go, words: &[], ..entry("quic-go", "", &[], "nothing: CUBIC") },
    Contender {
        program: QUICHE,
        ..entry("quiche", "", &[], "windows and datagrams of its examples, unpaced as those: CUBIC")
    },
    Contender {
        program: QUICHE,
        ..entry("quiche-bbr", "", &["--congestion", "bbr2"], "the same with BBR version 2")
    },
    Contender { program: TQUIC, ..entry("tquic", "", &[], "an idle timeout of 30 s, as its programs: BBR") },
    Contender {
        program: TQUIC,
        ..entry("tquic-cubic", "", &["--congestion", "cubic"], "the same with CUBIC")
    },
    Contender {
        program: TQUIC,
        ..entry(
            "tquic-ack-packets",
            "",
            &["--ack-packets", "10"],
            "BBR; the receiver has an ACK per 10 packets",
        )
    },
    Contender { program: MSQUIC, ..entry("msquic", "", &[], "room for 100 streams: CUBIC") },
    Contender { program: MSQUIC, ..entry("msquic-bbr", "", &["--congestion", "bbr"], "the same with BBR") },
    Contender {
        program: MSQUIC,
        ..entry("msquic-throughput", "", &["--throughput"], "its profile for throughput, windows of 16 MiB")
    },
    Contender {
        program: Program::Python("picoquic"),
        less: 2,
        ..entry("picoquic", "", &[], "nothing: BBR, by aiopquic")
    },
    Contender {
        program: Program::Python("picoquic"),
        less: 2,
        ..entry("picoquic-cubic", "", &["--congestion", "cubic"], "CUBIC")
    },
    Contender { program: Program::Python("aioquic"), less: 10, ..entry("aioquic", "", &[], "nothing: Reno") },
    Contender {
        program: Program::Python("aioquic"),
        less: 10,
        ..entry("aioquic-cubic", "", &["--congestion", "cubic"], "CUBIC")
    },
];

/// Stacks that no row has, and why.
pub const LEFT_OUT: &[(&str, &str)] = &[(
    "neqo, Google's quiche, lsquic, mvfst, xquic, ngtcp2",
    "in no registry of Rust, Go or Python in a version of today",
)];

/// Somewhere to run.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub name: &'static str,
    pub scenario: &'static str,
    pub assignments: &'static [&'static str],
    /// Simulated stations that download beside the real one.
    pub background: u32,
    /// Bytes of the download: some seconds of it.
    pub bulk_bytes: u64,
    /// Transfers of each size.
    pub times: u32,
    pub meaning: &'static str,
}

const WIFI: Place = Place {
    name: "wlan-11n-300",
    scenario: "wlan-11n-300",
    assignments: &[],
    background: 0,
    bulk_bytes: 150_000_000,
    times: 20,
    meaning: "802.11n at 300 Mb/s, one station, a queue of 256 packets",
};

/// The places, those of the page first.
pub const PLACES: &[Place] = &[
    WIFI,
    Place {
        name: "wlan-11ax-1200",
        scenario: "wlan-11ax-1200",
        bulk_bytes: 500_000_000,
        meaning: "802.11ax at 1201 Mb/s, one station",
        ..WIFI
    },
    Place {
        name: "lte-slow-uplink",
        scenario: "lte-slow-uplink",
        bulk_bytes: 5_000_000,
        times: 10,
        meaning: "8 Mb/s down, 50 kb/s up, 50 ms",
        ..WIFI
    },
    Place {
        name: "wire-lossy",
        scenario: "wired-10",
        assignments: &["wired.loss=1%"],
        bulk_bytes: 4_000_000,
        times: 10,
        meaning: "a wire of 10 Mb/s and 40 ms that loses 1 % each way",
        ..WIFI
    },
    Place {
        name: "wlan-11n-300-five",
        background: 4,
        bulk_bytes: 40_000_000,
        times: 10,
        meaning: "wlan-11n-300 with four simulated downloads beside",
        ..WIFI
    },
    Place {
        name: "wlan-11n-300-short",
        assignments: &["wifi.ap-queue=64 packets"],
        meaning: "wlan-11n-300 with a queue of 64 packets",
        ..WIFI
    },
    Place {
        name: "wlan-11n-300-long",
        assignments: &["wifi.ap-queue=2000 packets"],
        meaning: "wlan-11n-300 with a queue of 2000 packets",
        ..WIFI
    },
];

/// Of a name in [`PLACES`].
pub fn place(name: &str) -> Result<&'static Place, String> {
    let found = PLACES.iter().find(|place| place.name == name);
    found.ok_or_else(|| format!("there are {}", names(PLACES.iter().map(|place| place.name))))
}

/// Of a name in [`ROSTER`].
pub fn contender(name: &str) -> Result<&'static Contender, String> {
    let found = ROSTER.iter().find(|contender| contender.name == name);
    found.ok_or_else(|| format!("there are {}", names(ROSTER.iter().map(|contender| contender.name))))
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// What is fetched, beside the download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Small,
    Large,
    /// As the simulator's scenarios have by default: ten objects of 20 kB.
    Page,
}

impl Wanted {
    pub const ALL: [Self; 3] = [Self::Small, Self::Large, Self::Page];

    /// Bytes of an object, and objects.
    pub const fn objects(self) -> (u64, u32) {
        match self {
            Self::Small => (100_000, 1),
            Self::Large => (1_000_000, 1),
            Self::Page => (20_000, 10),
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Small => "100 kB",
            Self::Large => "1 MB",
            Self::Page => "page",
        }
    }
}
