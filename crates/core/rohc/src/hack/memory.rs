//! Where an end keeps its state: on the heap, or in room that its user has set aside.

use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

/// Gives the lists of one end their room, while the end is created. Nothing is asked of it later.
pub trait Memory {
    /// A list in this memory.
    type List<T>: List<T>;

    /// An empty list with room for `room` items.
    fn list<T>(&mut self, room: usize) -> Self::List<T>;

    /// An empty list for at most `room` items, which may take the room as it grows.
    fn growing<T>(&mut self, room: usize) -> Self::List<T> {
        self.list(room)
    }
}

/// A list whose room may be limited.
pub trait List<T>: DerefMut<Target = [T]> {
    /// Appends `item`. Without room for it, the list does not change, and [`List::is_cut`] from then on.
    fn push(&mut self, item: T);

    /// Removes all but the first `len` items.
    fn truncate(&mut self, len: usize);

    /// True if an item found no room.
    fn is_cut(&self) -> bool {
        false
    }

    /// Appends all of `items`, as [`List::push`] does.
    fn extend_from_slice(&mut self, items: &[T])
    where
        T: Copy,
    {
        items.iter().for_each(|item| self.push(*item));
    }
}

/// The heap of the program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heap;

impl Memory for Heap {
    type List<T> = Vec<T>;

    fn list<T>(&mut self, room: usize) -> Vec<T> {
        Vec::with_capacity(room)
    }

    fn growing<T>(&mut self, _: usize) -> Vec<T> {
        Vec::new()
    }
}

impl<T> List<T> for Vec<T> {
    fn push(&mut self, item: T) {
        self.push(item);
    }

    fn truncate(&mut self, len: usize) {
        self.truncate(len);
    }

    fn extend_from_slice(&mut self, items: &[T])
    where
        T: Copy,
    {
        Self::extend_from_slice(self, items);
    }
}

/// The part of a buffer that frames are written to.
#[derive(Debug)]
pub struct Room<'a> {
    bytes: &'a mut [u8],
    len: usize,
    cut: bool,
}

impl<'a> Room<'a> {
    /// Empty, with all of `bytes` as room.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, len: 0, cut: false }
    }
}

impl Deref for Room<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl DerefMut for Room<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }
}

impl List<u8> for Room<'_> {
    fn push(&mut self, item: u8) {
        match self.bytes.get_mut(self.len) {
            Some(byte) => {
                *byte = item;
                self.len += 1;
            }
            None => self.cut = true,
        }
    }

    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    fn is_cut(&self) -> bool {
        self.cut
    }
}
