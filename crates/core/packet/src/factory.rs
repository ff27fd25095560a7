//! References from a configuration to the factories of a user's own controllers and ACK policies.

use std::fmt;

/// Has a name for messages.
pub trait Named {
    /// Its name.
    fn name(&self) -> &str;
}

/// A reference to a factory that lives as long as the process, so that configurations are `Copy`. Two references are
/// equal if they point to the same factory.
pub struct FactoryRef<T: ?Sized + 'static>(pub &'static T);

impl<T: ?Sized> Clone for FactoryRef<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for FactoryRef<T> {}

impl<T: ?Sized> PartialEq for FactoryRef<T> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self.0, other.0)
    }
}

impl<T: ?Sized> Eq for FactoryRef<T> {}

impl<T: Named + ?Sized> fmt::Debug for FactoryRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FactoryRef({:?} at {:p})", self.0.name(), self.0)
    }
}
