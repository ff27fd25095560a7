//! `tacit rohc`.

use std::process::ExitCode;
use std::time::Instant;

use tacit_captures::rohc::{Channel, Codec, Converted, compare, compress, decompress, stats};

use crate::args::{RohcArgs, RohcCommand};
use crate::output::{FAILED, Failure, note, print_json, print_page};

pub fn run(args: RohcArgs) -> Result<ExitCode, Failure> {
    match args.command {
        RohcCommand::Stats { capture, codec, json } => {
            let codec = Codec::parse(&codec)?;
            let start = now();
            let stats = stats(&capture, codec, &|| now().duration_since(start))?;
            if json {
                print_json(&stats)?;
            } else {
                print_page(&stats.to_text())?;
            }
            if stats.wrong > 0 {
                note(&format!("tacit: {}: {} packets differ after decompression", stats.name, stats.wrong));
                return Ok(ExitCode::from(FAILED));
            }
            Ok(ExitCode::SUCCESS)
        }
        RohcCommand::Compress { capture, out, repeat, cid, json } => {
            let channel = Channel::parse(&cid, repeat)?;
            converted(&compress(&capture, &out, channel)?, json)
        }
        RohcCommand::Compare { capture, other, repeat, cid, json } => {
            let comparison = compare(&capture, &other, Channel::parse(&cid, repeat)?)?;
            if json {
                print_json(&comparison)?;
            } else {
                print_page(&comparison.to_text())?;
            }
            if comparison.wrong > 0 {
                note(&format!(
                    "tacit: {}: {} packets differ after decompression",
                    comparison.other, comparison.wrong
                ));
                return Ok(ExitCode::from(FAILED));
            }
            Ok(ExitCode::SUCCESS)
        }
        RohcCommand::Decompress { rohc, out, cid, json } => {
            // The decompressor does not depend on the number of repetitions.
            let channel = Channel::parse(&cid, 1)?;
            converted(&decompress(&rohc, &out, channel)?, json)
        }
    }
}

fn converted(converted: &Converted, json: bool) -> Result<ExitCode, Failure> {
    if json {
        print_json(converted)?;
    } else {
        print_page(&converted.to_text())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The cost of a packet is measured only here, in the outermost layer of the program.
#[expect(clippy::disallowed_methods, reason = "the time a codec takes is its result")]
fn now() -> Instant {
    Instant::now()
}
