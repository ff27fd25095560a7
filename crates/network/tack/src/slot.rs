//! A connection as its users and the hub of its socket share it.
//!
//! Two rules ensure that the driver misses no user's call. First, a session is locked either by a user, which
//! afterwards marks its slot and wakes the driver, or by the holder of the hub. If the holder of the hub finds a
//! session locked, it may skip it, because the user's mark will follow. Second, the hub clears a mark before it
//! examines the session, so a call that it does not see sets a new mark.
//!
//! Locks are acquired in this order: the hub, then one session or the list of marks. A user holds one lock at a time.

use std::sync::atomic::{AtomicBool, Ordering::AcqRel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use crate::session::{Notifiers, Session};

/// Attempts to lock a session before the driver skips it: a few microseconds, in which most calls end. The standard
/// library's mutex spins as often before it blocks.
const TRIES: u32 = 100;

/// A session with its lock.
pub(crate) struct Slot {
    pub id: u32,
    pub notifiers: Arc<Notifiers>,
    session: Mutex<Session>,
    /// Its number is in [`Marks`], or is about to be added.
    is_marked: AtomicBool,
}

impl Slot {
    pub fn new(id: u32, session: Session) -> Arc<Self> {
        let notifiers = session.notifiers.clone();
        Arc::new(Self { id, notifiers, session: Mutex::new(session), is_marked: AtomicBool::new(false) })
    }

    /// Locks the session. Only for a user, which marks the slot afterwards, and for the holder of the hub.
    pub fn lock(&self) -> MutexGuard<'_, Session> {
        // A poisoned lock can be used: every call leaves a session in a consistent state.
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries to lock the session for the holder of the hub; `None` if a user has it, which marks the slot afterwards.
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

    /// The hub has read the mark and examines the session after this.
    pub fn clear_mark(&self) {
        // Acquires the writes of users that found the mark already set.
        self.is_marked.swap(false, AcqRel);
    }

    /// The session of a slot without users.
    #[cfg(any(test, fuzzing))]
    pub fn alone(self: &mut Arc<Self>) -> &mut Session {
        let slot = Arc::get_mut(self).expect("the slot has no user");
        slot.session.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Numbers of the slots that users have marked since the hub last read the marks.
#[derive(Default)]
pub(crate) struct Marks(Mutex<Vec<u32>>);

impl Marks {
    /// Marks `slot`, whose session the caller has released. Returns true if it had no mark, in which case the driver
    /// has to be woken.
    pub fn mark(&self, slot: &Slot) -> bool {
        // Releases the user's writes to `clear_mark`.
        let is_first = !slot.is_marked.swap(true, AcqRel);
        if is_first {
            self.numbers().push(slot.id);
        }
        is_first
    }

    /// Locks the list of numbers, briefly and together with no other lock except the hub's.
    pub fn numbers(&self) -> MutexGuard<'_, Vec<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
