//! References from connections and streams to their session.

use std::sync::Arc;

use crate::session::Session;
use crate::shared::Shared;
use crate::slot::Slot;

/// Keeps a session alive: dropping the last handle closes the connection.
pub(crate) struct Handle {
    shared: Arc<Shared>,
    pub slot: Arc<Slot>,
}

/// On drop, marks the session for the driver after a user's call.
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

    /// Runs `act` on the session, which may then have something to send. The driver may have skipped the session
    /// meanwhile, so it is always woken.
    pub fn with<T>(&self, act: impl FnOnce(&mut Session) -> T) -> T {
        // Dropped after the lock, even if `act` panics.
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
