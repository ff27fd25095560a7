//! References of connections and streams to their session.

use std::sync::Arc;

use crate::session::Session;
use crate::shared::Shared;
use crate::slot::Slot;

/// Keeps a session alive: dropping the last handle closes the connection.
pub(crate) struct Handle {
    shared: Arc<Shared>,
    pub slot: Arc<Slot>,
}

/// Marks the session for the driver after a user's call, when it is dropped.
struct Mark<'a>(&'a Handle);

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        self.0.shared.mark(&self.0.slot);
    }
}

impl Handle {
    pub fn new(shared: Arc<Shared>, slot: Arc<Slot>) -> Self {
        Self { shared, slot }
    }

    /// Does something to the session, which may leave it with something to send. The driver may have passed the session by
    /// meanwhile, so it is woken in any case.
    pub fn with<T>(&self, act: impl FnOnce(&mut Session) -> T) -> T {
        // Outlives the lock, also where `act` panics.
        let _mark = Mark(self);
        let mut session = self.slot.lock();
        act(&mut session)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.with(|session| {
            session.handles = 0;
            session.close(0, "");
        });
    }
}
