//! Handles that C holds, and the bytes that it passes.

use core::ffi::{c_int, c_void};
use core::slice;

use crate::error::*;
use crate::memory::{Region, TACIT_ALIGN};

/// What C holds a pointer to.
#[repr(C)]
pub struct Handle<S> {
    kind: u32,
    /// 1 during a call.
    busy: u8,
    state: S,
}

/// The state behind a handle.
pub trait State {
    /// Tells handles of one kind from others, and from memory that is none.
    const KIND: u32;
}

/// Bytes of a handle and its lists.
pub(crate) fn size<S: State>(make: impl FnOnce(&mut Region) -> S) -> usize {
    let mut region = Region::counting(size_of::<Handle<S>>());
    make(&mut region);
    region.used()
}

/// Makes a handle at the start of `memory`, which has room for its lists, too.
///
/// # Safety
///
/// `memory` has `len` bytes, which are the handle's until its last use. `handle` may be written.
pub(crate) unsafe fn init<S: State>(
    memory: *mut c_void,
    len: usize,
    handle: *mut *mut Handle<S>,
    make: impl Fn(&mut Region) -> S,
) -> c_int {
    const { assert!(align_of::<Handle<S>>() <= TACIT_ALIGN, "the caller aligns to no more") };
    if memory.is_null() || handle.is_null() {
        return TACIT_ERR_NULL;
    }
    if !memory.addr().is_multiple_of(TACIT_ALIGN) || len < size(&make) {
        return TACIT_ERR_MEMORY;
    }
    // SAFETY: aligned, and `len` bytes by this function's contract.
    let mut region = unsafe { Region::over(memory, len, size_of::<Handle<S>>()) };
    let new_handle = Handle { kind: S::KIND, busy: 0, state: make(&mut region) };
    let at = memory.cast::<Handle<S>>();
    // SAFETY: the memory is aligned and long enough; `handle` may be written.
    unsafe {
        at.write(new_handle);
        handle.write(at);
    }
    TACIT_OK
}

/// A handle on the heap.
#[cfg(feature = "std")]
pub(crate) fn boxed<S: State>(state: S) -> *mut Handle<S> {
    Box::into_raw(Box::new(Handle { kind: S::KIND, busy: 0, state }))
}

/// Frees a handle of [`boxed`]. NULL is none.
///
/// # Safety
///
/// As for [`with`]. No one uses the handle later.
#[cfg(feature = "std")]
pub(crate) unsafe fn free<S: State>(handle: *mut Handle<S>) -> c_int {
    if handle.is_null() {
        return TACIT_OK;
    }
    // SAFETY: as for this function. A second call finds a kind that none has, if the memory still has it.
    let checked = unsafe { with(handle, |_| Ok(())) };
    if checked == TACIT_OK {
        // SAFETY: the kind says that `boxed` made it, and this is its last use.
        unsafe {
            (&raw mut (*handle).kind).write(0);
            drop(Box::from_raw(handle));
        }
    }
    checked
}

/// Calls `act` with the state of a handle.
///
/// # Safety
///
/// `handle` is NULL or points to memory that may be read as a handle.
pub(crate) unsafe fn with<S: State>(
    handle: *mut Handle<S>,
    act: impl FnOnce(&mut S) -> Result<(), c_int>,
) -> c_int {
    if handle.is_null() {
        return TACIT_ERR_NULL;
    }
    // SAFETY: aligned by the first condition, and readable by contract.
    if !handle.is_aligned() || unsafe { (&raw const (*handle).kind).read() } != S::KIND {
        return TACIT_ERR_HANDLE;
    }
    // SAFETY: the kind says that `init` or `boxed` made the handle. No reference to `busy` exists.
    let busy = unsafe { &raw mut (*handle).busy };
    // SAFETY: as above.
    if unsafe { busy.read() } != 0 {
        return TACIT_ERR_BUSY;
    }
    // SAFETY: as above. The handle was not busy, so no other reference to its state exists.
    let state = unsafe {
        busy.write(1);
        &mut (*handle).state
    };
    let result = code(act(state));
    // SAFETY: as above.
    unsafe { busy.write(0) };
    result
}

/// Input of C's. No bytes may have no pointer.
///
/// # Safety
///
/// `at` has `len` bytes, which do not change while the result is used.
pub(crate) unsafe fn input<'a>(at: *const u8, len: usize) -> Result<&'a [u8], c_int> {
    if len == 0 {
        return Ok(&[]);
    }
    check(at, len)?;
    // SAFETY: not null, of a possible length, and by contract.
    Ok(unsafe { slice::from_raw_parts(at, len) })
}

/// Output of C's.
///
/// # Safety
///
/// `at` has `len` bytes, to which no other reference exists while the result is used.
pub(crate) unsafe fn output<'a>(at: *mut u8, len: usize) -> Result<&'a mut [u8], c_int> {
    if len == 0 {
        return Ok(&mut []);
    }
    check(at, len)?;
    // SAFETY: not null, of a possible length, and by contract.
    Ok(unsafe { slice::from_raw_parts_mut(at, len) })
}

fn check(at: *const u8, len: usize) -> Result<(), c_int> {
    if at.is_null() {
        return Err(TACIT_ERR_NULL);
    }
    // No object is longer (C's PTRDIFF_MAX), and none wraps around.
    let possible = isize::try_from(len).is_ok() && at.addr().checked_add(len).is_some();
    if possible { Ok(()) } else { Err(TACIT_ERR_ARGUMENT) }
}

/// Writes a result that C may not want, where `at` is not NULL.
///
/// # Safety
///
/// As for [`put`].
pub(crate) unsafe fn put_if_wanted<T>(at: *mut T, value: T) -> Result<(), c_int> {
    // SAFETY: by contract.
    if at.is_null() { Ok(()) } else { unsafe { put(at, value) } }
}

/// Writes a result of a function where C wants it. Functions first write an empty result, so that a pointer that cannot be
/// written is an error before anything changes.
///
/// # Safety
///
/// `at` is NULL or may be written.
pub(crate) unsafe fn put<T>(at: *mut T, value: T) -> Result<(), c_int> {
    if at.is_null() {
        return Err(TACIT_ERR_NULL);
    }
    if !at.is_aligned() {
        return Err(TACIT_ERR_ARGUMENT);
    }
    // SAFETY: not null, aligned, and by contract.
    unsafe { at.write(value) };
    Ok(())
}
