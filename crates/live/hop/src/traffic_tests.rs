//! Passes packets as sent by real kernels through a world with HACK: every packet comes out once, byte by byte.

use etherparse::{IpNumber, PacketBuilder, TcpHeader, TcpOptionElement};
use tacit_packet::units::{Duration, HostId, Instant};
use tacit_runs::bound::{Bound, bind};
use tacit_runs::single::Options;
use tacit_sim::{Arrived, World};

use crate::address::Block;
use crate::datagram::{Datagram, Frame};
use crate::hop::Oracle;
use crate::table::AddressTable;

const SERVER: [u8; 4] = [198, 18, 0, 1];
const CLIENT: [u8; 4] = [198, 18, 0, 2];

type Tcp = etherparse::PacketBuilderStep<TcpHeader>;

/// A segment with timestamps from or to the client.
fn segment(from_client: bool, change: impl FnOnce(Tcp) -> Tcp, payload: &[u8]) -> Vec<u8> {
    let (source, destination) = if from_client { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
    let (from, to) = if from_client { (40_000, 80) } else { (80, 40_000) };
    let tcp = PacketBuilder::ipv4(source, destination, 64).tcp(from, to, 1_000, 512);
    let stamps = [TcpOptionElement::Noop, TcpOptionElement::Noop, TcpOptionElement::Timestamp(7, 9)];
    let mut bytes = Vec::new();
    change(tcp.options(&stamps).unwrap()).write(&mut bytes, payload).unwrap();
    bytes
}

fn ack(number: u32) -> Vec<u8> {
    segment(true, |tcp| tcp.ack(number), b"")
}

/// `bytes` with another value at `place`, and unchanged checksums.
fn with(mut bytes: Vec<u8>, place: usize, value: u8) -> Vec<u8> {
    bytes[place] = value;
    bytes
}

/// A hop with `scheme`, and the packets that entered it.
struct Hop {
    world: World<'static, Frame>,
    bound: Bound,
    now: Instant,
    sent: [Vec<Vec<u8>>; 2],
    arrived: [Vec<Vec<u8>>; 2],
    missing_frames: u64,
}

impl Hop {
    fn new(scheme: &str) -> Self {
        Self::beside(0, scheme, Oracle::Watch)
    }

    /// With this number of simulated clients.
    fn beside(background: u32, scheme: &str, oracle: Oracle) -> Self {
        // No packet may be lost, because the test checks each of them.
        Self::set(background, scheme, oracle, &["wifi.ap-queue=5000 packets"])
    }

    /// With additional assignments.
    fn set(background: u32, scheme: &str, oracle: Oracle, assignments: &[&str]) -> Self {
        let options = Options {
            scenario: "wlan-11n-150".into(),
            scheme: Some(scheme.into()),
            seed: 3,
            assignments: assignments.iter().map(|assignment| (*assignment).into()).collect(),
            ..Options::default()
        };
        let bound = bind(&options, background).unwrap();
        let mut setup = bound.setup.clone();
        setup.duration = Duration::from_secs(1_000);
        setup.measure_from = Instant::ZERO;
        let mut world = World::new(&setup, None).unwrap();
        if oracle == Oracle::Off {
            world = world.without_oracle();
        }
        let flows = setup.flows.iter().map(|flow| [flow.source, flow.sink]);
        *world.addresses_mut() = AddressTable::new(flows, [bound.near, bound.far], Block::first());
        let (sent, arrived) = Default::default();
        Self { world, bound, now: Instant::ZERO, sent, arrived, missing_frames: 0 }
    }

    fn send(&mut self, from_client: bool, bytes: Vec<u8>) {
        let (host, peer) =
            if from_client { (self.bound.near, self.bound.far) } else { (self.bound.far, self.bound.near) };
        self.world.inject(self.now, host, Frame::Live(Datagram::new(&bytes, peer)));
        self.sent[usize::from(from_client)].push(bytes);
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.world.handle_timeout(self.now).unwrap();
        while let Some(Arrived { host, packet, missing_frames }) = self.world.poll_arrived() {
            self.missing_frames += u64::from(missing_frames);
            let Frame::Live(datagram) = packet else { panic!("there is nothing else") };
            self.arrived[usize::from(host == self.bound.far)].push(datagram.bytes().to_vec());
        }
    }

    /// A steady download during which the client sends `words`, one per 10 segments.
    fn download(&mut self, words: &[Vec<u8>]) {
        for (number, word) in (0_u32..).zip(words) {
            for part in 0..10 {
                let seq = 5_000 + (number * 10 + part) * 1_000;
                let data = |tcp: Tcp| tcp.ack(1_000).psh();
                let mut bytes = segment(false, data, &[part as u8; 1_000]);
                bytes[24..28].copy_from_slice(&seq.to_be_bytes());
                self.send(false, bytes);
            }
            self.wait(Duration::from_micros(600));
            self.send(true, word.clone());
        }
        self.wait(Duration::from_secs(2));
    }

    /// ACKs may overtake each other, because they have two paths. None may be lost, changed or duplicated.
    fn check(mut self) -> tacit_sim::RunOutcome {
        self.world.verify().unwrap();
        for (sent, arrived) in self.sent.iter_mut().zip(&mut self.arrived) {
            sent.sort();
            arrived.sort();
            assert!(sent == arrived, "{} sent, {} arrived", sent.len(), arrived.len());
        }
        self.world.outcome()
    }
}

fn compressed(outcome: &tacit_sim::RunOutcome) -> u64 {
    outcome.bss[0]
        .stations
        .iter()
        .filter_map(|station| station.driver.hack())
        .map(|hack| hack.compressed_acks)
        .sum()
}

#[test]
fn frames_that_fwps_link_lost_are_counted_before_what_comes_next() {
    let assignments = ["wifi.ap-queue=5000 packets", "wifi.mpdu-error={ down = \"10 %\" }"];
    let mut hop = Hop::set(0, "fwp", Oracle::Watch, &assignments);
    for number in 0..2_000_u32 {
        let mut bytes = segment(false, |tcp| tcp.ack(1_000).psh(), &[0; 1_000]);
        bytes[24..28].copy_from_slice(&(5_000 + number * 1_000).to_be_bytes());
        hop.send(false, bytes);
        // 40 Mb/s, at which no queue overflows.
        hop.wait(Duration::from_micros(200));
    }
    hop.wait(Duration::from_secs(2));
    let [sent, arrived] = [&hop.sent, &hop.arrived].map(|way| way[0].len() as u64);
    let lost = sent - arrived;
    assert!((150..250).contains(&lost), "{lost} of {sent} are lost");
    // Losses after the last received frame are not counted.
    assert!((lost - 5..=lost).contains(&hop.missing_frames), "{} missing, {lost} lost", hop.missing_frames);
}

const SCHEMES: [&str; 5] = ["stock", "hack-more-data", "hack-batch", "hack-opportunistic", "hack-timer"];

#[test]
fn plain_acks_ride_and_come_out_as_they_were() {
    for scheme in SCHEMES {
        let [watched, alone] = [Oracle::Watch, Oracle::Off].map(|oracle| {
            let mut hop = Hop::beside(0, scheme, oracle);
            let words: Vec<_> = (0..200).map(|number| ack(5_000 + number * 10_000)).collect();
            hop.download(&words);
            hop.check()
        });
        assert_eq!(compressed(&alone) > 20, scheme != "stock", "{scheme}: {}", compressed(&alone));
        assert_eq!(watched.digest, alone.digest, "{scheme}: bytes alone say where an ACK goes");
    }
}

/// The bytes alone distinguish ACKs of simulated stations from those of real ones, and identify their flow.
#[test]
fn acks_of_simulated_stations_ride_beside_those_of_real_ones() {
    let [watched, alone] = [Oracle::Watch, Oracle::Off].map(|oracle| {
        let mut hop = Hop::beside(2, "hack-more-data", oracle);
        let words: Vec<_> = (0..200).map(|number| ack(5_000 + number * 10_000)).collect();
        hop.download(&words);
        hop.check()
    });
    let rode = alone.bss[0].stations.iter().map(|station| station.driver.hack().unwrap().compressed_acks);
    let [_, real, simulated @ ..] = &rode.collect::<Vec<_>>()[..] else { panic!("stations") };
    assert!(*real > 20 && simulated.len() == 2 && simulated.iter().all(|acks| *acks > 100), "{simulated:?}");
    assert!(alone.flows.iter().all(|flow| flow.delivered_total.0 > 1_000_000), "{:?}", alone.flows);
    assert_eq!(watched.digest, alone.digest);
}

#[test]
fn other_packets_than_plain_acks_come_out_unchanged_too() {
    let number = |number: u32| 5_000 + number * 10_000;
    let strange = |index: u32| -> Vec<u8> {
        let ack_number = number(index);
        match index % 16 {
            // The response to a keep-alive, a window update and a duplicate ACK.
            0 => ack(ack_number),
            1 => segment(true, |tcp| tcp.ack(number(index - 1)), b""),
            2 => with(ack(ack_number), 34, 9),
            // ECN: ECE, CWR, and the code points of IP.
            3 => segment(true, |tcp| tcp.ack(ack_number).ece(), b""),
            4 => segment(true, |tcp| tcp.ack(ack_number).cwr(), b""),
            5 => with(ack(ack_number), 1, 2),
            // Flags.
            6 => segment(true, |tcp| tcp.ack(ack_number).syn(), b""),
            7 => segment(true, |tcp| tcp.ack(ack_number).urg(3), b""),
            8 => segment(true, |tcp| tcp.ack(ack_number).psh(), b""),
            9 => segment(true, |tcp| tcp.ack(ack_number).fin(), b""),
            // A checksum that offloading would have to complete.
            10 => with(ack(ack_number), 36, 0xee),
            // SACK, an unknown option, and truncated options.
            11 => segment(
                true,
                |tcp| {
                    let blocks =
                        TcpOptionElement::SelectiveAcknowledgement((1, 2), [Some((5, 9)), None, None]);
                    tcp.ack(ack_number)
                        .options(&[TcpOptionElement::Noop, TcpOptionElement::Noop, blocks])
                        .unwrap()
                },
                b"",
            ),
            12 => segment(true, |tcp| tcp.ack(ack_number).options_raw(&[253, 4, 1, 2]).unwrap(), b""),
            13 => segment(true, |tcp| tcp.ack(ack_number).options_raw(&[0, 0, 0, 0]).unwrap(), b""),
            // A fragment, and an upload of one byte.
            14 => with(ack(ack_number), 6, 0x20),
            _ => segment(true, |tcp| tcp.ack(ack_number), b"x"),
        }
    };
    for scheme in SCHEMES {
        let mut hop = Hop::new(scheme);
        // Ordinary ACKs in between keep the contexts established.
        let words: Vec<_> =
            (1..321).map(|index| if index % 3 == 0 { strange(index) } else { ack(number(index)) }).collect();
        hop.download(&words);
        hop.check();
    }
}

#[test]
fn other_protocols_than_tcp_are_carried() {
    let mut hop = Hop::new("hack-more-data");
    let mut udp = Vec::new();
    PacketBuilder::ipv4(CLIENT, SERVER, 64).udp(1, 2).write(&mut udp, &[7; 900]).unwrap();
    let mut echo = Vec::new();
    PacketBuilder::ipv4(CLIENT, SERVER, 64).icmpv4_echo_request(1, 2).write(&mut echo, b"ping").unwrap();
    let mut six = Vec::new();
    let unknown = PacketBuilder::ipv6([0xfd; 16], [0xfe; 16], 64);
    unknown.write(&mut six, IpNumber::IPV6_NO_NEXT_HEADER, b"whatever").unwrap();
    hop.download(&[udp, echo, six, vec![0x45], vec![0; 60], vec![0xff; 1_500]]);
    hop.check();
}

#[test]
fn acks_over_ipv6_ride() {
    let mut hop = Hop::new("hack-more-data");
    let (server, client) = ([0xfd; 16], [0xfc; 16]);
    let words: Vec<_> = (0..200_u32)
        .map(|number| {
            let mut bytes = Vec::new();
            let tcp = PacketBuilder::ipv6(client, server, 64).tcp(40_000, 80, 1_000, 512);
            tcp.ack(5_000 + number * 10_000).write(&mut bytes, b"").unwrap();
            bytes
        })
        .collect();
    hop.download(&words);
    let outcome = hop.check();
    assert!(compressed(&outcome) > 20, "{}", compressed(&outcome));
}

#[test]
fn a_packet_for_nobody_ends_the_run_instead_of_vanishing() {
    let mut hop = Hop::new("stock");
    let lost = Datagram::new(&ack(1), HostId(77));
    let sent = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        hop.world.inject(hop.now, hop.bound.near, Frame::Live(lost));
        hop.world.handle_timeout(hop.now + Duration::from_secs(1))
    }));
    assert!(!matches!(sent, Ok(Ok(()))));
}
