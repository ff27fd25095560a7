//! What a program without an operating system lacks.

use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;
use core::ptr;

unsafe extern "C" {
    /// The program's own: stops it. It must not return.
    safe fn tacit_panic() -> !;
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    tacit_panic()
}

/// Has no memory: the ACK law and HACK's ends need none but their user's.
struct None;

// SAFETY: null says that there is no memory, so nothing is ever freed.
unsafe impl GlobalAlloc for None {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static HEAP: None = None;
