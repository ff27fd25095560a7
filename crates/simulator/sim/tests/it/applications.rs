//! Programs over links with results that can be calculated by hand.

use crate::common::*;
use tacit_link::loss::Loss;
use tacit_link::wifi::phy::Standard;
use tacit_packet::IpVersion;
use tacit_packet::units::{BitRate, Bytes, Duration, FlowId, HostId, Instant};
use tacit_sim::record::{ApplicationResult, OnOffTimes, PageLoads, VideoPlayed};
use tacit_sim::setup::{
    Application, ApplicationSetup, End, Law, Objects, OnOff, RequestResponse, Setup, Span, Streaming, Traffic,
};
use tacit_sim::{RunOutcome, run};
use tacit_tcp as tcp;

/// Payload of a full segment: 1500 bytes minus IP, TCP and timestamps.
const SEGMENT: u64 = 1448;
const DELAY: Duration = Duration::from_millis(10);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn fixed(mean: Duration) -> Span {
    Span { mean, law: Law::Fixed }
}

fn exponential(mean: Duration) -> Span {
    Span { mean, law: Law::Exponential }
}

/// A wire of `rate` and 10 ms from host 0 to host 1, and `connections` over which `application` runs.
fn over_wire(rate: BitRate, application: Application, traffic: &Traffic, connections: u32) -> Setup {
    let mut setup = wired(rate, DELAY, 1_000, Loss::None, traffic.clone());
    setup.measure_from = Instant::ZERO;
    setup.flows = vec![setup.flows[0].clone(); connections as usize];
    setup.applications = vec![ApplicationSetup {
        name: "tested".into(),
        flows: (0..connections).map(FlowId).collect(),
        application,
    }];
    setup
}

fn datagrams(payload: u64) -> Traffic {
    Traffic::Udp {
        ip: IpVersion::V4,
        payload: Bytes(payload),
        rate: None,
        report_after: None,
        send_buffer: None,
    }
}

fn pages(requester: End, objects: &[u64], think: Duration) -> Application {
    Application::RequestResponse(RequestResponse {
        requester,
        objects: Objects::Listed(objects.iter().copied().map(Bytes).collect()),
        request: Bytes(400),
        think: fixed(think),
        keeps_connections: true,
        repair: None,
    })
}

fn page_loads(outcome: &RunOutcome) -> &PageLoads {
    let ApplicationResult::Pages(loads) = &outcome.applications[0].result else { panic!("pages") };
    loads
}

fn video(outcome: &RunOutcome) -> VideoPlayed {
    let ApplicationResult::Stream(video) = &outcome.applications[0].result else { panic!("a video") };
    *video
}

fn on_off(outcome: &RunOutcome) -> OnOffTimes {
    let ApplicationResult::OnOff(times) = &outcome.applications[0].result else { panic!("on and off") };
    *times
}

#[test]
fn a_page_of_one_object_takes_its_round_trips_and_its_bytes() {
    let rate = BitRate::from_mbps(10);
    let wire = |bytes| rate.time_for(Bytes(bytes));
    // SYN and SYN-ACK of 60 bytes; the request in a segment of 400 bytes, which also acknowledges the SYN-ACK; ten
    // segments, which is the initial window.
    let (handshake, question, objects) =
        (wire(60) * 2 + DELAY * 2, wire(452) + DELAY, wire(1500) * 10 + DELAY);
    let down = pages(End::Sink, &[10 * SEGMENT], ms(1_000));
    let outcome = run(&over_wire(rate, down, &bulk(tcp::Config::default()), 1)).unwrap();
    let loads = page_loads(&outcome);
    // The first page ends at 53 ms, and each further one 1.033 s after the previous one.
    assert_eq!(loads.load_times.len(), 10);
    assert_eq!(loads.load_times[0], question + objects, "connected");
    assert_eq!(loads.load_times[9], handshake + question + objects, "the first");
    assert_eq!(loads.percentile(50), Some(question + objects));
    assert_eq!(loads.percentile(100), Some(loads.load_times[9]));
    assert_eq!(outcome.flows[0].delivered_total, Bytes(10 * 10 * SEGMENT), "questions travel the other way");
}

#[test]
fn an_upload_sends_its_object_with_the_question() {
    let rate = BitRate::from_mbps(10);
    let wire = |bytes| rate.time_for(Bytes(bytes));
    let up = pages(End::Source, &[10 * SEGMENT], ms(20_000));
    let outcome = run(&over_wire(rate, up, &bulk(tcp::Config::default()), 1)).unwrap();
    let expected = wire(60) * 2 + wire(1500) * 10 + wire(452) + DELAY * 4;
    assert_eq!(page_loads(&outcome).load_times, [expected]);
    assert_eq!(outcome.flows[0].delivered_total, Bytes(10 * SEGMENT));
}

/// Each page opens a connection, so that each takes as long as the first one of a kept connection; after the last
/// connection there are no more pages.
#[test]
fn a_page_with_a_connection_of_its_own_includes_its_handshake() {
    let rate = BitRate::from_mbps(10);
    let wire = |bytes| rate.time_for(Bytes(bytes));
    let handshake = wire(60) * 2 + DELAY * 2;
    let (question, objects) = (wire(452) + DELAY, wire(1500) * 10 + DELAY);
    let Application::RequestResponse(mut plan) = pages(End::Sink, &[10 * SEGMENT], ms(1_000)) else {
        panic!("pages")
    };
    plan.keeps_connections = false;
    let application = Application::RequestResponse(plan);
    let outcome = run(&over_wire(rate, application, &bulk(tcp::Config::default()), 3)).unwrap();
    let loads = page_loads(&outcome);
    assert_eq!(loads.load_times, [handshake + question + objects; 3]);
    assert_eq!(loads.last, Some(handshake + question + objects));
    assert_eq!(loads.waiting_since, None, "the user left");
}

#[test]
fn objects_of_a_document_are_fetched_in_parallel() {
    let rate = BitRate::from_mbps(100);
    let one_segment = [SEGMENT; 7];
    let load = |connections| {
        let application = pages(End::Sink, &one_segment, ms(20_000));
        let outcome = run(&over_wire(rate, application, &bulk(tcp::Config::default()), connections)).unwrap();
        page_loads(&outcome).load_times[0].as_millis() / 20
    };
    // A round trip of 20 ms for the handshake, one for the document, and one for each round of objects; the
    // transmission time adds less than one.
    assert_eq!([1, 2, 3, 6, 20].map(load), [8, 5, 4, 3, 3]);
}

/// A window that fits a queue of 50 packets.
fn small_window() -> Traffic {
    bulk(tcp::Config { receive_buffer: Bytes(64_000), ..tcp::Config::default() })
}

/// 25 frames per second of 20 full segments each: 5.792 Mb/s, which take 6 Mb/s of a wire.
fn movie(buffer: Duration) -> Streaming {
    Streaming { rate: BitRate::from_bps(25 * 20 * SEGMENT * 8), frame_rate: 25, buffer, repair: None }
}

/// Two minutes of this video over a queue of 50 packets.
fn watch(rate: BitRate, traffic: &Traffic, loss: Loss) -> VideoPlayed {
    let mut setup = over_wire(rate, Application::Streaming(movie(ms(1_000))), traffic, 1);
    setup.wired[0].forward.loss = loss;
    setup.wired[0].forward.queue = packets(50).into();
    setup.duration = Duration::from_secs(120);
    video(&run(&setup).unwrap())
}

#[test]
fn a_video_with_just_enough_rate_never_waits() {
    let watched = watch(BitRate::from_mbps(6), &small_window(), Loss::None);
    assert_eq!((watched.rebuffers, watched.rebuffering, watched.frames_damaged), (0, Duration::ZERO, 0));
    let start_up = watched.start_up.unwrap();
    assert!((ms(1_000)..ms(1_200)).contains(&start_up), "{start_up}: a second of video and slow start");
    // The rest of two minutes, including the first and the last frame.
    assert_eq!(watched.watched, Duration::from_secs(120) - start_up);
    assert_eq!(watched.frames_played, watched.watched.as_nanos() / ms(40).as_nanos() + 1);
}

#[test]
fn a_video_with_half_its_rate_waits_half_of_the_time() {
    let watched = watch(BitRate::from_mbps(3), &small_window(), Loss::None);
    // While the second in the buffer is played, the next one arrives within two seconds; then two seconds bring the
    // next. That is 118 seconds, after two of start-up, in rounds of four minus a frame or two where rounds meet.
    let ratio = watched.rebuffering_ratio().unwrap();
    assert!((ratio - 0.5).abs() < 0.01, "{ratio}");
    assert!((29..=31).contains(&watched.rebuffers), "{watched:?}");
}

#[test]
fn a_datagram_lost_is_a_frame_damaged() {
    let lost = Loss::Scripted(vec![5, 25, 26, 59]);
    let watched = watch(BitRate::from_mbps(12), &datagrams(SEGMENT), lost);
    assert_eq!((watched.frames_damaged, watched.rebuffers), (3, 0), "frames 0, 1 and 2");
}

#[test]
fn datagrams_beyond_the_rate_are_damage_not_waits() {
    let watched = watch(BitRate::from_mbps(3), &datagrams(SEGMENT), Loss::None);
    assert_eq!(watched.rebuffers, 0, "{watched:?}");
    let damaged = watched.frames_damaged as f64 / watched.frames_played as f64;
    // A frame of 20 datagrams loses about ten, except for the first frames, which fit in the queue.
    assert!((0.99..1.0).contains(&damaged), "{watched:?}");
}

#[test]
fn a_video_that_stops_is_played_to_its_end() {
    for (traffic, damaged) in [(bulk(tcp::Config::default()), 0), (datagrams(SEGMENT), 1)] {
        let mut setup =
            over_wire(BitRate::from_mbps(12), Application::Streaming(movie(ms(200))), &traffic, 1);
        // 50 frames in two seconds; the last datagram of the last frame is lost.
        setup.flows[0].stop = Some(Instant::ZERO + ms(2_000));
        if damaged > 0 {
            setup.wired[0].forward.loss = Loss::Scripted(vec![50 * 20 - 1]);
        }
        let watched = video(&run(&setup).unwrap());
        assert_eq!((watched.frames_played, watched.frames_damaged, watched.rebuffers), (50, damaged, 0));
        assert_eq!(watched.watched, ms(49 * 40));
    }
}

#[test]
fn a_source_is_on_and_off_by_the_clock() {
    // 1250 bytes per 10 ms; one second on, one second off.
    let source = OnOff {
        on: fixed(ms(1_000)),
        off: fixed(ms(1_000)),
        rate: Some(BitRate::from_mbps(1)),
        chunk: Bytes(1_250),
    };
    for traffic in [datagrams(1_250), bulk(tcp::Config::default())] {
        let mut setup = over_wire(BitRate::from_mbps(10), Application::OnOff(source), &traffic, 1);
        setup.measure_from = Instant::ZERO + ms(500);
        let outcome = run(&setup).unwrap();
        assert_eq!(outcome.flows[0].delivered_total, Bytes(5 * 100 * 1_250));
        assert_eq!(on_off(&outcome), OnOffTimes { periods: 4, on_time: ms(4_500) });
    }
}

#[test]
fn drawn_times_have_their_mean_and_repeat_with_the_seed() {
    let source =
        OnOff { on: exponential(ms(100)), off: exponential(ms(300)), rate: None, chunk: Bytes(SEGMENT) };
    let run_with = |seed| {
        let traffic = bulk(tcp::Config::default());
        let mut setup = over_wire(BitRate::from_mbps(10), Application::OnOff(source), &traffic, 1);
        (setup.seed, setup.duration) = (seed, Duration::from_secs(300));
        run(&setup).unwrap()
    };
    let outcome = run_with(1);
    let times = on_off(&outcome);
    // 750 rounds of 400 ms; their number varies by about 20.
    assert!((690..=810).contains(&times.periods), "{times:?}");
    let share = times.on_time.as_secs_f64() / 300.0;
    assert!((share - 0.25).abs() < 0.03, "{share}");
    assert_eq!(run_with(1).digest, outcome.digest);
    assert_ne!(run_with(2).digest, outcome.digest);
}

#[test]
fn a_flow_beside_it_does_not_move_a_programs_draws() {
    let plan = RequestResponse {
        requester: End::Sink,
        objects: Objects::Drawn { count: 10, mean: Bytes(20_000) },
        request: Bytes(400),
        think: exponential(ms(500)),
        keeps_connections: true,
        repair: None,
    };
    let application = Application::RequestResponse(plan);
    let alone = over_wire(BitRate::from_mbps(100), application, &bulk(tcp::Config::default()), 4);
    let mut beside = alone.clone();
    beside.flows.push(beside.flows[0].clone());
    beside.flows[4].stop = Some(Instant::ZERO + Duration::from_nanos(1));
    let delivered = |setup: &Setup| {
        let outcome = run(setup).unwrap();
        let bytes: u64 = outcome.flows[..4].iter().map(|flow| flow.delivered_total.0).sum();
        (bytes, page_loads(&outcome).load_times.len())
    };
    assert_eq!(delivered(&alone), delivered(&beside));
}

#[test]
fn programs_over_wifi_pass_through_bytes_unchanged() {
    let mut setup = wlan(Standard::N, 150, 3, &bulk(tcp::Config::default()));
    setup.flows.push(setup.flows[0].clone());
    setup.flows[2].traffic = datagrams(1_400);
    let program = |name: &str, flows: &[u32], application| ApplicationSetup {
        name: name.into(),
        flows: flows.iter().copied().map(FlowId).collect(),
        application,
    };
    setup.applications = vec![
        program("web", &[0, 3], pages(End::Sink, &[3_000, 50_000, 200_000], ms(100))),
        program("video", &[2], Application::Streaming(movie(ms(500)))),
    ];
    let outcome = run(&setup).unwrap();
    assert!(page_loads(&outcome).load_times.len() > 10);
    let wire = Setup { wire: true, ..setup };
    assert_eq!(run(&wire).unwrap().digest, outcome.digest);
}

#[test]
fn contradictions_are_refused() {
    let application = || pages(End::Sink, &[1_000], ms(1));
    let good = || over_wire(BitRate::from_mbps(1), application(), &bulk(tcp::Config::default()), 2);
    let refused = |setup: Setup| run(&setup).unwrap_err().to_string();
    let mut setup = good();
    setup.flows[1].sink = HostId(0);
    setup.flows[1].source = HostId(1);
    assert!(refused(setup).contains("differ in hosts"));
    let mut setup = good();
    setup.applications.push(setup.applications[0].clone());
    assert!(refused(setup).contains("feeds the same flow"));
    let mut setup = good();
    setup.applications[0].flows.push(FlowId(7));
    assert!(refused(setup).contains("does not exist"));
    let setup = over_wire(BitRate::from_mbps(1), application(), &datagrams(1_000), 1);
    assert!(refused(setup).contains("needs TCP"));
    let setup = over_wire(
        BitRate::from_mbps(1),
        application(),
        &Traffic::Connection { config: tcp::Config::default().into(), size: Some(Bytes(1)) },
        1,
    );
    assert!(refused(setup).contains("size of its own"));
}

#[test]
fn a_setup_can_lose_flows_and_keeps_its_numbers_right() {
    let mut setup = wlan(Standard::N, 150, 3, &bulk(tcp::Config::default()));
    let program = |name: &str, flow| ApplicationSetup {
        name: name.into(),
        flows: vec![FlowId(flow)],
        application: pages(End::Sink, &[1_000], ms(100)),
    };
    setup.applications = vec![program("first", 0), program("last", 2)];
    setup.retain_flows(|flow| flow.sink != client(0));
    assert_eq!(setup.flows.len(), 2);
    assert_eq!(setup.applications.len(), 1);
    assert_eq!((setup.applications[0].name.as_str(), setup.applications[0].flows[0]), ("last", FlowId(1)));
}
