//! Slots that exist as long as the process, for objects that do not.
//!
//! A configuration of the simulator holds a static reference to a program's objects, but objects from Python live only
//! for a run. During the run, such an object occupies one of these slots. Slots are reused, so their number is the
//! maximum used at the same time.

use std::sync::{Arc, Mutex, PoisonError};

/// A slot for a `T`.
pub struct Slot<T: 'static> {
    content: Mutex<Option<Arc<T>>>,
}

/// All free slots for a `T`.
pub type Free<T> = Mutex<Vec<&'static Slot<T>>>;

/// A slot in use, which becomes free when this value is dropped.
pub struct Taken<T: 'static> {
    pub slot: &'static Slot<T>,
    free: &'static Free<T>,
}

impl<T> Slot<T> {
    /// The object in the slot; `None` after its run.
    pub fn content(&self) -> Option<Arc<T>> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn put(&self, content: Option<Arc<T>>) {
        *self.content.lock().unwrap_or_else(PoisonError::into_inner) = content;
    }
}

impl<T> Taken<T> {
    /// Takes a free slot, or creates one.
    pub fn new(free: &'static Free<T>, content: Arc<T>) -> Self {
        let found = free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let slot = found.unwrap_or_else(|| Box::leak(Box::new(Slot { content: Mutex::new(None) })));
        slot.put(Some(content));
        Self { slot, free }
    }
}

impl<T> Drop for Taken<T> {
    fn drop(&mut self) {
        self.slot.put(None);
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(self.slot);
    }
}
