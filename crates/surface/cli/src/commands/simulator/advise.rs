//! `tacit advise`.

use std::process::ExitCode;

use serde::Serialize;
use tacit_analysis::advise::{Advice, Question, advise};
use tacit_analysis::report;
use tacit_captures::audit::{Observed, audit_file};
use tacit_scenario::MAX_CLIENTS;
use tacit_scenario::input::parse_rtt;
use tacit_scenario::table::count;

use crate::args::AdviseArgs;
use crate::output::{Failure, note, print_answer, print_json};
use crate::progress::{cache, watched};

/// The JSON output.
#[derive(Serialize)]
struct AdviseOutput<'a> {
    #[serde(flatten)]
    advice: &'a Advice,
    /// Null without a capture.
    observed: Option<Observed>,
}

pub fn run(args: &AdviseArgs) -> Result<ExitCode, Failure> {
    let observed = args.capture.as_deref().map(|path| Ok::<_, Failure>(audit_file(path)?.observed()));
    let observed = observed.transpose()?;
    let question = question(args, observed.as_ref())?;
    if let Some(observed) = &observed {
        note(&format!("from the capture: {}", observed_text(observed)));
    }
    let cache = cache(args.no_cache);
    let advice = watched(cache.as_ref(), |control| advise(&question, control))?;
    let drawn =
        args.report.as_deref().map(|directory| report::write(&advice.comparison, directory)).transpose()?;
    if args.json {
        print_json(&AdviseOutput { advice: &advice, observed })?;
    } else {
        print_answer(&advice.to_text(args.width.limit()))?;
    }
    if let Some(path) = drawn {
        note(&format!("report: {}", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn question(args: &AdviseArgs, observed: Option<&Observed>) -> Result<Question, Failure> {
    let rtt = args.link.rtt.as_deref().map(parse_rtt).transpose()?;
    let receivers = observed.map(|observed| (observed.receivers as u32).clamp(1, MAX_CLIENTS));
    let clients = args.clients.or(receivers);
    let (scenario, assignments) =
        args.link.without_rtt().scenario(args.scenario.as_deref(), &args.assignments, clients)?;
    Ok(Question {
        scenario,
        assignments,
        rtt: rtt.or_else(|| observed?.rtt),
        clients,
        uploads: None,
        segments_per_ack: observed.and_then(|observed| observed.segments_per_ack),
        seeds: args.seeds,
        max_seeds: args.max_seeds,
        quick: args.quick,
        directory: args.report.clone(),
    })
}

fn observed_text(observed: &Observed) -> String {
    let rtt = match observed.rtt {
        Some(rtt) => format!(
            "round trip {:.1} ms (median of {})",
            rtt.as_secs_f64() * 1e3,
            count(observed.handshakes as u64, "handshake")
        ),
        None => "no handshake, hence no round-trip time (use --rtt)".to_owned(),
    };
    let frequency = match observed.segments_per_ack {
        Some(segments) => format!("an ACK per {}", count(segments.into(), "segment")),
        None => "only one direction, hence no ACK frequency".to_owned(),
    };
    format!("{rtt}, {}, {frequency}", count(observed.receivers as u64, "receiver"))
}
