//! Programs in random worlds. They have their own random streams, so the rest of the world does not change.

use tacit_link::random::Stream;
use tacit_packet::units::{BitRate, Bytes, Duration, FlowId, Instant};
use tacit_sim::RunOutcome;
use tacit_sim::record::ApplicationResult;
use tacit_sim::setup::{
    Application, ApplicationSetup, End, Law, Objects, OnOff, RequestResponse, Setup, Span, Streaming, Traffic,
};

use crate::pick;

fn span(draw: &mut Stream) -> Span {
    let law = pick(draw, &[Law::Fixed, Law::Exponential]);
    Span { mean: Duration::from_millis(u64::from(pick(draw, &[1_u32, 20, 300, 2_000]))), law }
}

fn pages(draw: &mut Stream) -> Application {
    let size = |draw: &mut Stream| Bytes(u64::from(pick(draw, &[1_u32, 700, 20_000, 300_000])));
    let objects = match draw.up_to(1) {
        0 => Objects::Drawn { count: 1 + draw.up_to(20), mean: size(draw) },
        _ => Objects::Listed((0..=draw.up_to(5)).map(|_| size(draw)).collect()),
    };
    Application::RequestResponse(RequestResponse {
        requester: pick(draw, &[End::Source, End::Sink]),
        objects,
        request: Bytes(u64::from(1 + draw.up_to(3_000))),
        think: Span {
            mean: pick(draw, &[Duration::ZERO, Duration::from_millis(200)]),
            law: Law::Exponential,
        },
        keeps_connections: draw.up_to(3) > 0,
        repair: None,
    })
}

fn program(draw: &mut Stream, over_tcp: bool) -> Application {
    let rate = BitRate::from_kbps(u64::from(pick(draw, &[8_u32, 300, 4_000, 30_000])));
    match draw.up_to(2) {
        0 if over_tcp => pages(draw),
        0 | 1 => Application::OnOff(OnOff {
            on: span(draw),
            off: span(draw),
            rate: (!over_tcp || draw.up_to(1) == 0).then_some(rate),
            chunk: Bytes(u64::from(pick(draw, &[8_u32, 500, 1_400]))),
        }),
        _ => Application::Streaming(Streaming {
            rate,
            frame_rate: pick(draw, &[1, 24, 60, 1_000]),
            buffer: Duration::from_millis(u64::from(pick(draw, &[0_u32, 100, 2_000]))),
            repair: None,
        }),
    }
}

/// The world of `seed` with programs instead of some of the flows that feed themselves.
pub fn add_programs(setup: &mut Setup, seed: u64) {
    let draw = &mut Stream::new(seed, "swarm programs");
    for index in 0..setup.flows.len() {
        let over_tcp = matches!(setup.flows[index].traffic, Traffic::Connection { .. });
        if draw.up_to(2) == 0 {
            continue;
        }
        if let Traffic::Connection { size, .. } = &mut setup.flows[index].traffic {
            *size = None;
        }
        let application = program(draw, over_tcp);
        let mut flows = vec![FlowId(index as u32)];
        if matches!(application, Application::RequestResponse(_)) {
            for _ in 0..draw.up_to(5) {
                flows.push(FlowId(setup.flows.len() as u32));
                let another = setup.flows[index].clone();
                setup.flows.push(another);
            }
        }
        setup.applications.push(ApplicationSetup { name: format!("program {index}"), flows, application });
    }
}

/// When data was last delivered to the sink of any of `flows` since `since`, according to samples.
fn last_progress(outcome: &RunOutcome, flows: &[FlowId], since: Instant) -> Instant {
    let mut last = since;
    for flow in flows {
        let mut delivered = Bytes(0);
        for point in outcome.series.iter().filter(|point| point.flow == *flow) {
            if point.delivered_total > delivered {
                delivered = point.delivered_total;
                last = last.max(point.at);
            }
        }
    }
    last
}

/// Checks the invariants of every program. `patient` means that losses or leaving stations excuse a page that does not
/// arrive; otherwise no program waits for longer than `longest_pause` without receiving data.
pub fn check_programs(
    setup: &Setup,
    outcome: &RunOutcome,
    seed: u64,
    patient: bool,
    longest_pause: Duration,
) {
    let end = Instant::ZERO + setup.duration;
    for (program, result) in setup.applications.iter().zip(&outcome.applications) {
        let name = &program.name;
        assert_eq!(program.flows, result.flows, "seed {seed}");
        match &result.result {
            ApplicationResult::Pages(loads) => {
                assert!(loads.load_times.is_sorted(), "seed {seed}: {name}");
                let Some(since) = loads.waiting_since.filter(|_| !patient) else { continue };
                // Requests go in the opposite direction, which is not sampled, so they get an additional pause.
                let pause = end.saturating_since(last_progress(outcome, &program.flows, since));
                assert!(pause <= longest_pause * 2, "seed {seed}: {name} waits for a page since {since}");
            }
            ApplicationResult::OnOff(times) => {
                assert!(times.on_time <= setup.duration, "seed {seed}: {name}: {times:?}");
            }
            ApplicationResult::Stream(video) => {
                assert!(video.frames_damaged <= video.frames_played, "seed {seed}: {name}: {video:?}");
                assert!(video.rebuffering <= video.watched, "seed {seed}: {name}: {video:?}");
                let Application::Streaming(plan) = &program.application else { panic!("a video") };
                let most = setup.duration.as_nanos() * u64::from(plan.frame_rate) / 1_000_000_000 + 1;
                assert!(video.frames_played <= most, "seed {seed}: {name}: {video:?}");
            }
            ApplicationResult::Download(got) => {
                assert!(got.released <= got.released_total, "seed {seed}: {name}: {got:?}");
                assert!(got.failure.is_some() || patient || got.released_total > Bytes(0), "{name}: {got:?}");
            }
        }
    }
}
