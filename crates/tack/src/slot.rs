//! One connection as its users and the hub of its socket share it.
//!
//! Two rules keep the driver from missing a user's call. First, a session is locked by a user, which then marks its slot and wakes the
//! driver, or by the holder of the hub. So a holder of the hub that finds a session locked may leave it: its user's mark is still to
//! come. Second, the hub clears a mark before it looks at the session: a call that it does not see makes another mark.
//!
//! Locks are taken in this order: the hub, then one session or the list of marks. A user holds one at a time.

use std::sync::atomic::{AtomicBool, Ordering::AcqRel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use crate::session::{Notifiers, Session};

/// Looks at a locked session before the driver goes on without it: a few microseconds, in which most calls end. As many as the
/// standard library's mutex takes before its thread sleeps.
const TRIES: u32 = 100;

/// A session with its lock.
pub(crate) struct Slot {
    pub id: u32,
    pub notifiers: Arc<Notifiers>,
    session: Mutex<Session>,
    /// Its number is in [`Marks`], or about to be.
    is_marked: AtomicBool,
}

impl Slot {
    pub fn new(id: u32, session: Session) -> Arc<Self> {
        let notifiers = session.notifiers.clone();
        Arc::new(Self { id, notifiers, session: Mutex::new(session), is_marked: AtomicBool::new(false) })
    }

    /// The session, once others have let go of it. Only for a user, which marks the slot afterwards, and for the holder of the hub.
    pub fn lock(&self) -> MutexGuard<'_, Session> {
        // A panic of another thread leaves a session as whole as each of its calls leaves it.
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session, for the holder of the hub; `None` while a user has it, which marks the slot afterwards.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, Session>> {
        for _ in 0..TRIES {
            match self.session.try_lock() {
                Ok(session) => return Some(session),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
            }
        }
        None
    }

    /// The hub took the mark in, and looks at the session after this.
    pub fn clear_mark(&self) {
        // Acquires the writes of users that found the mark already made.
        self.is_marked.swap(false, AcqRel);
    }

    /// The session of a slot that has no user.
    #[cfg(any(test, fuzzing))]
    pub fn alone(self: &mut Arc<Self>) -> &mut Session {
        let slot = Arc::get_mut(self).expect("the slot has no user");
        slot.session.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Numbers of the slots that users marked since the hub took marks in.
#[derive(Default)]
pub(crate) struct Marks(Mutex<Vec<u32>>);

impl Marks {
    /// Marks `slot`, whose session the caller has let go of. True if it had no mark: the driver has to be woken.
    pub fn mark(&self, slot: &Slot) -> bool {
        // Releases to `clear_mark` all that the user did.
        let is_first = !slot.is_marked.swap(true, AcqRel);
        if is_first {
            self.numbers().push(slot.id);
        }
        is_first
    }

    /// The numbers, whose lock is held for a moment, and with it no other but the hub's.
    pub fn numbers(&self) -> MutexGuard<'_, Vec<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
