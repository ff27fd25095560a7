//! Time limits for waiting on a client.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

/// A limit on each wait. It runs from the first poll that is not ready until one is.
#[derive(Debug)]
pub struct WaitLimit {
    span: Duration,
    stuck: Option<Pin<Box<Sleep>>>,
}

impl WaitLimit {
    /// Allows `span` for each wait.
    pub fn new(span: Duration) -> Self {
        Self { span, stuck: None }
    }

    /// Passes on a ready `result`. `None` means that the wait timed out.
    pub fn poll<T>(&mut self, cx: &mut Context<'_>, result: Poll<T>) -> Poll<Option<T>> {
        if let Poll::Ready(value) = result {
            self.stuck = None;
            return Poll::Ready(Some(value));
        }
        let span = self.span;
        self.stuck.get_or_insert_with(|| Box::pin(sleep(span))).as_mut().poll(cx).map(|()| None)
    }
}
