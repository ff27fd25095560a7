//! Places that live as long as the process, for objects that do not.
//!
//! A configuration of the simulator holds a reference that lives for ever to a program's objects. Objects from Python live
//! for a run: one sits in one of these places meanwhile. There are as many as ever were taken at once.

use std::sync::{Arc, Mutex, PoisonError};

/// A place for a `T`.
pub struct Slot<T: 'static> {
    content: Mutex<Option<Arc<T>>>,
}

/// All free places for a `T`.
pub type Free<T> = Mutex<Vec<&'static Slot<T>>>;

/// A taken place; it is given back when this is dropped.
pub struct Taken<T: 'static> {
    pub slot: &'static Slot<T>,
    free: &'static Free<T>,
}

impl<T> Slot<T> {
    /// The object that sits there; `None` after its run.
    pub fn content(&self) -> Option<Arc<T>> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn put(&self, content: Option<Arc<T>>) {
        *self.content.lock().unwrap_or_else(PoisonError::into_inner) = content;
    }
}

impl<T> Taken<T> {
    /// Takes a place that is free, or makes one.
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
