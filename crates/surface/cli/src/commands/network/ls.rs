//! `tacit ls`.

use std::process::ExitCode;

use serde::Serialize;
use tacit_apps::copy::is_part;
use tacit_apps::copy::session::list;
use tacit_apps::copy::wire::{Entry, Kind, Listing, Timestamp};
use tacit_apps::copy::{Action, CopyError, Options, Report};
use tokio::io::{BufReader, BufWriter};

use super::client::Client;
use super::copy_summary::parts_line;
use super::remote::{Remote, SCHEME, remote};
use super::seen;
use super::streams::{READ_BYTES, streams};
use crate::args::LsArgs;
use crate::output::{FAILED, Failure, note, print, print_json, printable};

/// A path for `--json`.
#[derive(Serialize)]
struct Listed {
    path: String,
    kind: &'static str,
    size_bytes: Option<u64>,
    target: Option<String>,
    mode: String,
    modified: String,
}

impl From<Entry> for Listed {
    fn from(Entry { path, kind, mtime, mode }: Entry) -> Self {
        let (kind, size_bytes, target) = match kind {
            Kind::File { size_bytes, .. } => ("file", Some(size_bytes), None),
            Kind::Stream => ("file", None, None),
            Kind::Directory => ("directory", None, None),
            Kind::Symlink { target } => ("symlink", None, Some(target)),
        };
        Self { path, kind, size_bytes, target, mode: format!("{mode:04o}"), modified: utc(mtime) }
    }
}

impl Listed {
    fn to_line(&self) -> String {
        let size = self.size_bytes.map(|bytes| bytes.to_string()).unwrap_or_default();
        let end = match (&self.target, self.kind) {
            (Some(target), _) => format!(" -> {target}"),
            (None, "directory") => "/".to_owned(),
            (None, _) => String::new(),
        };
        format!("{size:>15}  {}  {}\n", self.modified, printable(&format!("{}{end}", self.path)))
    }
}

pub fn run(args: &LsArgs) -> Result<ExitCode, Failure> {
    seen::begin(&args.seen);
    let mut places = Vec::new();
    for path in &args.paths {
        let place = remote(path).map_err(CopyError::Argument)?;
        let local =
            || CopyError::Argument(format!("{path}: tacit ls lists {SCHEME}[CODE@]HOST[:PORT]/PATH only"));
        places.push(place.ok_or_else(local)?);
    }
    let client = Client::new(&args.seen)?;
    let (mut all, mut has_failed, mut parts) = (Vec::new(), false, (0u64, 0u64));
    let options = Options { exclude: args.exclude.clone(), ..Options::default() };
    for Remote { server, path, code } in places {
        if let Some(code) = code {
            client.accept_invitation(&server, &code)?;
        }
        let reached = client.reach(&server)?;
        let listing = async {
            let (reader, writer) = streams(&reached.connection).await?;
            let mut reader = BufReader::with_capacity(READ_BYTES, reader);
            let mut writer = BufWriter::new(writer);
            let (paths, is_recursive, with_parts) = (vec![path], args.recursive, args.all);
            let found = |found: Result<Entry, Report>| -> Result<(), ListError> {
                if let Ok(Entry { path, kind: Kind::File { size_bytes, .. }, .. }) = &found
                    && is_part(path)
                {
                    (parts.0, parts.1) = (parts.0 + 1, parts.1.saturating_add(*size_bytes));
                }
                match found {
                    Ok(entry) if args.json => all.push(Listed::from(entry)),
                    Ok(entry) => print(&Listed::from(entry).to_line()).map_err(ListError::Here)?,
                    Err(Report { path, action, reason }) => {
                        has_failed |= action == Action::Failed;
                        let reason = reason.unwrap_or_default();
                        note(&printable(&format!("tacit: {path}: {reason}")));
                    }
                }
                Ok(())
            };
            let listing = Listing { paths, is_recursive, with_parts };
            list(listing, &options, &mut reader, &mut writer, found).await
        };
        client.runtime.block_on(listing).map_err(|error| match error {
            ListError::There(error) => client.explain_refusal(&server, error),
            ListError::Here(failure) => failure,
        })?;
    }
    if args.json {
        print_json(&all)?;
    }
    if parts.0 > 0 {
        note(&parts_line(parts));
    }
    Ok(if has_failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// Why a listing ends early.
enum ListError {
    There(CopyError),
    Here(Failure),
}

impl From<CopyError> for ListError {
    fn from(error: CopyError) -> Self {
        Self::There(error)
    }
}

/// A time in the format of RFC 3339, in UTC.
fn utc(time: Timestamp) -> String {
    let (days, second) = (time.s().div_euclid(86_400), time.s().rem_euclid(86_400));
    // In a year that starts in March, the leap day is the last day. 146,097 days are 400 such years. There are 719,468
    // days from 1 March of the year 0 to 1970.
    let days = i128::from(days) + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // From March on, months have 31, 30, 31, 30 and 31 days, and this pattern repeats: 153 days per five months.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i128::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates() {
        // Expected values from GNU date -u -d @N.
        for (s, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (-2_208_988_800, "1900-01-01T00:00:00Z"),
            (15_000_000_000, "2445-05-01T02:40:00Z"),
        ] {
            assert_eq!(utc(Timestamp::new(s, 0).unwrap()), text);
        }
        // Extreme values do not overflow.
        assert!(utc(Timestamp::new(i64::MAX, 0).unwrap()).ends_with('Z'));
        assert!(utc(Timestamp::new(i64::MIN, 0).unwrap()).ends_with('Z'));
    }
}
