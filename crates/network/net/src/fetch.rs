//! Downloads one file.

use std::path::PathBuf;
use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue, LOCATION, USER_AGENT};

use crate::body::Answer;
use crate::client::{get, go_on};
use crate::connection::{Connector, Settings};
use crate::digest::offered;
use crate::error::NetError;
use crate::part::{EarlierPart, Incoming};
use crate::partial::{PartialDownload, RangeError};
use crate::reach::{Reach, is_public};
use crate::report::{Overheads, RepairReport, Report, Shim, Verified, bits_per_second};
use crate::target::Target;

/// Most redirects that are followed; the limits of curl and browsers are 10 to 20.
const REDIRECTS_MAX: u32 = 10;
/// How often a download may start over because the file changed on the server.
const STARTS_MAX: u32 = 3;

/// Source, destination and settings of a fetch.
#[derive(Clone, Debug)]
pub struct Options {
    /// `http://…` or `https://…`.
    pub url: String,
    /// `None` is standard output.
    pub destination: Option<PathBuf>,
    /// Discard what an earlier attempt received.
    pub restart: bool,
    /// The SHA-256 that the file must have.
    pub sha256: Option<String>,
    /// Settings for connections to servers.
    pub settings: Settings,
}

/// Called with the bytes received so far and the total, if known.
pub type Progress<'a> = &'a mut dyn FnMut(u64, Option<u64>);

/// Fetches a file.
///
/// # Errors
/// If the file is incomplete in the end. If it can be resumed, the received bytes stay in a part file beside the
/// destination.
pub async fn fetch(options: &Options, progress: Progress<'_>) -> Result<Report, NetError> {
    let target = Target::parse(&options.url)?;
    if let Some(wanted) = &options.sha256
        && (wanted.len() != 64 || !wanted.bytes().all(|digit| digit.is_ascii_hexdigit()))
    {
        return Err(NetError::Argument(format!(
            "{wanted:?} is no SHA-256: those have 64 hexadecimal digits"
        )));
    }
    let mut fetch = Fetch {
        options,
        settings: Arc::new(options.settings.clone()),
        file: Incoming::open(options.destination.as_deref())?,
        started: tokio::time::Instant::now(),
        was_damaged: false,
    };
    match fetch.run(target, progress).await {
        Ok(done) => fetch.finish(&done),
        Err(error) => {
            fetch.file.leave();
            Err(error)
        }
    }
}

struct Fetch<'a> {
    options: &'a Options,
    settings: Arc<Settings>,
    file: Incoming,
    started: tokio::time::Instant,
    /// The bytes of an earlier attempt had been modified on disk.
    was_damaged: bool,
}

/// A body that was received completely.
struct FetchedBody {
    answer: Answer,
    before: u64,
}

impl Fetch<'_> {
    async fn run(&mut self, target: Target, progress: Progress<'_>) -> Result<FetchedBody, NetError> {
        let left =
            if self.options.restart { EarlierPart::Nothing } else { self.file.resume(&self.options.url) };
        self.was_damaged = matches!(left, EarlierPart::Damaged);
        if let EarlierPart::PartialDownload(begun, found_at) = left
            && let Ok(answer) = self.resume(begun, &found_at).await
        {
            let before = self.file.bytes();
            match self.copy(answer, before, progress).await {
                Err(NetError::Range(RangeError::Changed)) => (),
                // The bytes of the earlier attempt may be wrong: fetch the whole file again.
                Ok(done) if self.wanted(&done).is_some_and(|(wanted, _)| wanted != self.file.sha256()) => {
                    self.was_damaged = true;
                }
                result => return result,
            }
        }
        for start in 1.. {
            let answer = self.find(target.clone()).await?;
            let found_at = answer.connector.target.to_string();
            if !self.file.begin(&self.options.url, &found_at, answer.resumable.as_ref())? {
                return Err(RangeError::Changed.into());
            }
            match self.copy(answer, 0, progress).await {
                // The file changed on the server: start over with its new version.
                Err(NetError::Range(RangeError::Changed)) if start < STARTS_MAX => (),
                result => return result,
            }
        }
        Err(RangeError::Changed.into())
    }

    async fn resume(&self, begun: PartialDownload, found_at: &str) -> Result<Answer, NetError> {
        let target = Target::parse(found_at)?;
        let connector = Connector::new(Arc::clone(&self.settings), Arc::new(Reach::All), target);
        go_on(&Arc::new(connector), begun).await
    }

    /// Follows redirects to the file.
    async fn find(&self, mut target: Target) -> Result<Answer, NetError> {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("tacit/", env!("CARGO_PKG_VERSION"))));
        // The checksum applies to the file as stored, without content coding.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(crate::digest::WANT, HeaderValue::from_static("sha-256=10"));
        let mut reach = Arc::new(Reach::All);
        for _ in 0..=REDIRECTS_MAX {
            let connector =
                Arc::new(Connector::new(Arc::clone(&self.settings), Arc::clone(&reach), target.clone()));
            let answer = get(&connector, &headers, true).await?;
            match answer.status {
                StatusCode::OK => return Ok(answer),
                StatusCode::MOVED_PERMANENTLY
                | StatusCode::FOUND
                | StatusCode::SEE_OTHER
                | StatusCode::TEMPORARY_REDIRECT
                | StatusCode::PERMANENT_REDIRECT => {
                    let location = answer.headers.get(LOCATION).and_then(|location| location.to_str().ok());
                    let Some(location) = location else { return Err(refused(&target, answer.status)) };
                    // A public server must not redirect to addresses that only this machine can reach.
                    if connector.peer().is_some_and(is_public) {
                        let hint = ": a public server redirects there";
                        reach = Arc::new(Reach::Public { also: Vec::new(), hint, proxy: None });
                    }
                    let next = target.join(location)?;
                    if target.is_tls && !next.is_tls {
                        return Err(NetError::Downgrade { url: next.to_string() });
                    }
                    target = next;
                }
                status => return Err(refused(&target, status)),
            }
        }
        Err(NetError::Redirects(REDIRECTS_MAX))
    }

    async fn copy(
        &mut self,
        mut answer: Answer,
        before: u64,
        progress: Progress<'_>,
    ) -> Result<FetchedBody, NetError> {
        let whole = answer.body.left().map(|left| before + left);
        progress(before, whole);
        while let Some(bytes) = answer.body.next().await? {
            self.file.write(&bytes)?;
            progress(self.file.bytes(), whole);
        }
        Ok(FetchedBody { answer, before })
    }

    /// The SHA-256 that the file must have, in lower-case hexadecimal digits, and its source.
    fn wanted(&self, done: &FetchedBody) -> Option<(String, Verified)> {
        match &self.options.sha256 {
            Some(wanted) => Some((wanted.to_ascii_lowercase(), Verified::Argument)),
            None => offered(&done.answer.headers).map(|wanted| (wanted, Verified::Server)),
        }
    }

    fn finish(self, done: &FetchedBody) -> Result<Report, NetError> {
        let (bytes, sha256) = (self.file.bytes(), self.file.sha256());
        let wanted = self.wanted(done);
        if let Some((wanted, _)) = wanted.as_ref().filter(|(wanted, _)| *wanted != sha256) {
            self.file.discard();
            return Err(NetError::Checksum { found: sha256, wanted: wanted.clone() });
        }
        self.file.commit()?;
        let span = self.started.elapsed();
        let fresh = bytes - done.before;
        let (connector, repaired) = (&done.answer.connector, done.answer.body.repaired());
        let hop = connector.hop();
        let overheads = Overheads::measure(connector, fresh, repaired.counters.late_bytes);
        Ok(Report {
            url: self.options.url.clone(),
            found_at: connector.target.to_string(),
            file: self.options.destination.as_ref().map(|path| path.display().to_string()),
            bytes,
            resumed_bytes: done.before,
            was_damaged: self.was_damaged,
            sha256,
            verified: wanted.map(|(_, by)| by),
            duration_s: span.as_secs_f64(),
            throughput_bps: bits_per_second(fresh, span),
            shim: match (hop.registered, &hop.refused) {
                (1.., _) => Shim::Registered,
                (0, Some(_)) => Shim::Refused,
                (0, None) => Shim::None,
            },
            repair: done
                .answer
                .resumable
                .as_ref()
                .map(|_| RepairReport::new(&repaired, &hop, overheads.placeholder_bytes)),
            shim_refused: hop.refused,
            is_tls: connector.target.is_tls,
            connections: hop.connections,
            internet_overhead: overheads.internet,
            wireless_overhead: overheads.wireless,
        })
    }
}

fn refused(target: &Target, status: StatusCode) -> NetError {
    NetError::Status { url: target.to_string(), status }
}
