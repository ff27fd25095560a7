//! A repair connection: up to two pipelined requests, with placeholders allowed anywhere in the answers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tacit_between::fwp::repair::{Range, RequestId};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::answers::{AnswerEvent, Answers, Request, Subject, Unusable};
use crate::entity::Entity;
use crate::error::NetError;
use crate::flow::Flow;

/// Identifier of a repair connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionId(pub u64);

/// An event of a repair connection.
#[derive(Debug)]
pub enum RepairEvent {
    /// It is connected.
    Open,
    /// Bytes were received.
    Received(Received),
    /// The connection cannot be used any longer.
    Over(Unusable),
}

/// Results of one read.
#[derive(Debug, Default)]
pub struct Received {
    /// Bytes of the file.
    pub pieces: Vec<Piece>,
    /// These repair requests get no more bytes.
    pub ended: Vec<RequestId>,
    /// Requests that were answered completely.
    pub answered: usize,
    /// The last request whose answer named the version of the file.
    pub proven: Option<u64>,
}

/// Bytes that fill a hole, or part of it.
#[derive(Debug)]
pub struct Piece {
    /// The repair request that they answer.
    pub id: RequestId,
    /// Position of the first byte in the file.
    pub position: u64,
    /// The bytes.
    pub bytes: Bytes,
    /// True if their answer named the version of the file.
    pub is_proven: bool,
}

/// Most bytes per read.
const READ_LEN: usize = 64 * 1024;
/// A server that does not answer a request for several ranges within this time is asked for single ranges only. The
/// paper's buffer for live video, 8 s, must not run empty.
const LESSON_TIMEOUT: Duration = Duration::from_secs(3);

/// Runs a repair connection until it ends.
pub async fn run(
    id: ConnectionId,
    entity: Arc<Entity>,
    requests: mpsc::Receiver<Request>,
    events: mpsc::Sender<(ConnectionId, RepairEvent)>,
) {
    let Err(why) = serve(id, &entity, requests, &events).await else { return };
    // Fails if the session has ended, which needs no handling.
    let _ = events.send((id, RepairEvent::Over(why))).await;
}

async fn serve(
    id: ConnectionId,
    entity: &Entity,
    mut requests: mpsc::Receiver<Request>,
    events: &mpsc::Sender<(ConnectionId, RepairEvent)>,
) -> Result<(), Unusable> {
    let (tcp, flow) = entity.connector.open(true).await?;
    let subject = Subject { validator: entity.validator.clone(), complete: entity.complete };
    let mut line = RepairConnection { entity, tcp, flow, answers: Answers::new(subject), is_allowed: false };
    let mut lesson = None;
    if !entity.shape().is_known() {
        line.send(Request::question(entity.next_number(), entity.complete)).await?;
        lesson = Some(tokio::time::Instant::now() + LESSON_TIMEOUT);
    }
    if events.send((id, RepairEvent::Open)).await.is_err() {
        return Ok(());
    }
    let mut buffer = vec![0; READ_LEN];
    loop {
        lesson = lesson.filter(|_| !entity.shape().is_known());
        let given_up = lesson.unwrap_or_else(|| tokio::time::Instant::now() + LESSON_TIMEOUT);
        tokio::select! {
            request = requests.recv() => match request {
                Some(request) => line.send(request).await?,
                // The session has ended.
                None => return Ok(()),
            },
            ready = line.tcp.readable() => {
                ready.map_err(|error| broken(&error))?;
                let (received, result) = line.read(&mut buffer);
                if events.send((id, RepairEvent::Received(received))).await.is_err() {
                    return Ok(());
                }
                result?;
            }
            () = tokio::time::sleep_until(given_up), if lesson.is_some() => return Err(Unusable::Refuses(2)),
        }
    }
}

fn broken(error: &std::io::Error) -> NetError {
    NetError::Broken(error.to_string())
}

struct RepairConnection<'a> {
    entity: &'a Entity,
    tcp: TcpStream,
    flow: Option<Flow>,
    answers: Answers,
    is_allowed: bool,
}

impl RepairConnection<'_> {
    async fn send(&mut self, request: Request) -> Result<(), NetError> {
        if !self.is_allowed && self.entity.shape().places_heads() {
            self.is_allowed = true;
            // A shim that is gone writes no placeholders.
            self.flow.as_ref().map(|flow| flow.allow(Range { start: 0, end: u64::MAX })).transpose().ok();
        }
        let text = self.entity.request_text(&request.value())?;
        self.answers.expect(request);
        self.tcp.write_all(&text).await.map_err(|error| broken(&error))?;
        self.entity.connector.traffic.sent.fetch_add(text.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Reads the available bytes.
    fn read(&mut self, buffer: &mut [u8]) -> (Received, Result<(), Unusable>) {
        let mut received = Received::default();
        let len = match self.tcp.try_read(buffer) {
            Ok(0) => return (received, Err(NetError::Broken("the server ended it".to_owned()).into())),
            Ok(len) => len,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return (received, Ok(())),
            Err(error) => return (received, Err(broken(&error).into())),
        };
        let result = self.judge(&buffer[..len], &mut received);
        (received, result)
    }

    fn judge(&mut self, bytes: &[u8], received: &mut Received) -> Result<(), Unusable> {
        let traffic = &self.entity.connector.traffic;
        let end = self.answers.at() + bytes.len() as u64;
        traffic.received.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let mut holes = Vec::new();
        if let Some(flow) = &self.flow {
            // The shim announces holes before their placeholders reach TCP, so the holes in these bytes are known by
            // now.
            flow.drain()?;
            holes = flow.take_holes(end);
            // Original bytes that arrive late are not used; the holes are requested again.
            drop(flow.take_late());
            // The shim may forget the holes as well.
            holes.iter().for_each(|hole| flow.repaired(*hole));
        }
        let hit: u64 = holes.iter().map(|hole| hole.bytes()).sum();
        traffic.placeholders.fetch_add(hit, Ordering::Relaxed);
        let mut heard = Vec::new();
        let result = self.answers.take(bytes, &holes, &mut self.entity.shape(), &mut heard);
        let bytes = Bytes::copy_from_slice(bytes);
        for heard in heard {
            match heard {
                AnswerEvent::Bytes { id, position, from, len, is_proven } => {
                    let bytes = bytes.slice(from..from + len);
                    received.pieces.push(Piece { id, position, bytes, is_proven });
                }
                AnswerEvent::Proven(number) => received.proven = received.proven.max(Some(number)),
                AnswerEvent::Ended(id) => received.ended.push(id),
                AnswerEvent::Answered => received.answered += 1,
            }
        }
        result
    }
}
