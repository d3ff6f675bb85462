//! The interpreter's memory: Rust's allocator within a bound, which also refuses large pieces once the script must stop.
//!
//! A built-in function on something large (`JSON.stringify`, a concatenation) takes milliseconds, and thousands of
//! them pass between two looks of the interpreter's loop. Each asks for a large piece, so they are stopped here.

use crate::guard::Guard;
use pando_base::limits::JS_LARGE_PIECE_BYTES;
use rquickjs::allocator::{Allocator, RustAllocator};
use std::ptr::null_mut;
use std::sync::Arc;

pub(crate) struct Guarded {
    guard: Arc<Guard>,
    used: usize,
    max: usize,
}

impl Guarded {
    pub(crate) fn new(guard: Arc<Guard>, max: usize) -> Guarded {
        Guarded { guard, used: 0, max }
    }
    /// Whether a piece may grow from `old` to `new` bytes.
    fn grants(&mut self, old: usize, new: usize) -> bool {
        if new > old && self.used - old + new > self.max {
            self.guard.note_out_of_memory();
            return false;
        }
        new <= old || new < JS_LARGE_PIECE_BYTES || !self.guard.check()
    }
    #[allow(unsafe_code)]
    fn counted(&mut self, ptr: *mut u8) -> *mut u8 {
        if !ptr.is_null() {
            // SAFETY: a piece that was just given out.
            self.used += unsafe { RustAllocator::usable_size(ptr) };
        }
        ptr
    }
}

// SAFETY: every piece comes from `RustAllocator`, which keeps the contract; a null pointer is always allowed.
#[allow(unsafe_code)]
unsafe impl Allocator for Guarded {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if !self.grants(0, size) {
            return null_mut();
        }
        self.counted(RustAllocator.alloc(size))
    }
    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        match count.checked_mul(size) {
            Some(bytes) if self.grants(0, bytes) => self.counted(RustAllocator.calloc(count, size)),
            _ => null_mut(),
        }
    }
    unsafe fn dealloc(&mut self, ptr: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe {
            self.used -= RustAllocator::usable_size(ptr);
            RustAllocator.dealloc(ptr);
        }
    }
    unsafe fn realloc(&mut self, ptr: *mut u8, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's promise, and `ptr` came from here.
        unsafe {
            let old = RustAllocator::usable_size(ptr);
            if !self.grants(old, new_size) {
                return null_mut();
            }
            let moved = RustAllocator.realloc(ptr, new_size);
            if !moved.is_null() {
                self.used -= old;
            }
            self.counted(moved)
        }
    }
    unsafe fn usable_size(ptr: *mut u8) -> usize {
        // SAFETY: the caller's promise.
        unsafe { RustAllocator::usable_size(ptr) }
    }
}
