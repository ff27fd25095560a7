//! What a program brings along, as a configuration holds it.

use std::fmt;

/// Says what it is called, for people.
pub trait Named {
    /// Its name.
    fn name(&self) -> &str;
}

/// A reference that lives as long as the process, so that configurations stay `Copy`. Two are equal if they are the very same.
pub struct Brought<T: ?Sized + 'static>(pub &'static T);

impl<T: ?Sized> Clone for Brought<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Brought<T> {}

impl<T: ?Sized> PartialEq for Brought<T> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self.0, other.0)
    }
}

impl<T: ?Sized> Eq for Brought<T> {}

impl<T: Named + ?Sized> fmt::Debug for Brought<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Brought({:?} at {:p})", self.0.name(), self.0)
    }
}
