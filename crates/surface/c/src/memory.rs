//! The memory that a caller gives: a handle, and behind it the handle's lists.

use core::ffi::c_void;
use core::marker::PhantomData;
use core::mem::needs_drop;
use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};
use core::slice;

use tacit_rohc::hack::{List, Memory};

/// Memory for a handle starts at a multiple of this number of bytes.
pub const TACIT_ALIGN: usize = 16;

/// Hands out parts of the caller's memory, or only counts how much there would have to be.
pub struct Region {
    /// Null while it counts.
    start: *mut u8,
    len: usize,
    used: usize,
}

impl Region {
    /// Counts from `used` bytes on.
    pub const fn counting(used: usize) -> Self {
        Self { start: ptr::null_mut(), len: 0, used }
    }

    /// Hands out what is behind the first `used` bytes.
    ///
    /// # Safety
    ///
    /// `start` is aligned to [`TACIT_ALIGN`] and has `len` bytes, which belong to the lists until their last use.
    pub const unsafe fn over(start: *mut c_void, len: usize, used: usize) -> Self {
        Self { start: start.cast(), len, used }
    }

    /// Bytes that were handed out or counted.
    pub const fn used(&self) -> usize {
        self.used
    }
}

impl Memory for Region {
    type List<T> = Fixed<T>;

    fn list<T>(&mut self, room: usize) -> Fixed<T> {
        const {
            assert!(align_of::<T>() <= TACIT_ALIGN, "the caller aligns to no more");
            assert!(!needs_drop::<T>(), "nothing is dropped");
        }
        let at = self.used.next_multiple_of(align_of::<T>());
        self.used = at + room * size_of::<T>();
        if self.start.is_null() || self.used > self.len {
            return Fixed { items: NonNull::dangling(), len: 0, room: 0, owns: PhantomData };
        }
        // SAFETY: `over` promises `len` bytes, and `at` and all items lie within.
        let items = unsafe { NonNull::new_unchecked(self.start.add(at)) };
        Fixed { items: items.cast(), len: 0, room, owns: PhantomData }
    }
}

/// A list in the caller's memory.
pub struct Fixed<T> {
    /// Aligned room for `room` items. The first `len` are initialised.
    items: NonNull<T>,
    len: usize,
    room: usize,
    owns: PhantomData<T>,
}

impl<T> Deref for Fixed<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the first `len` items are initialised, and no one else has them.
        unsafe { slice::from_raw_parts(self.items.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Fixed<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`.
        unsafe { slice::from_raw_parts_mut(self.items.as_ptr(), self.len) }
    }
}

impl<T> List<T> for Fixed<T> {
    #[inline]
    fn push(&mut self, item: T) {
        debug_assert!(self.len < self.room || self.room == 0, "the ends ask for the room that they need");
        if self.len < self.room {
            // SAFETY: there is room for one more item behind the initialised ones.
            unsafe { self.items.add(self.len).write(item) };
            self.len += 1;
        }
    }

    #[inline]
    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    #[inline]
    fn extend_from_slice(&mut self, items: &[T])
    where
        T: Copy,
    {
        let fits = items.len().min(self.room - self.len);
        // SAFETY: there is room for `fits` more items behind the initialised ones, and `items` is not part of it.
        unsafe { ptr::copy_nonoverlapping(items.as_ptr(), self.items.add(self.len).as_ptr(), fits) };
        self.len += fits;
    }
}
