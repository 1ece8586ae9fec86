//! The allocator of a component. An instance lives for one pass, so memory is handed out in a row and never taken back;
//! the last piece may grow where it stands.
#![allow(unsafe_code)]

use std::{
    alloc::{GlobalAlloc, Layout},
    arch::wasm32,
    cell::{Cell, UnsafeCell},
    ptr,
};

/// Memory that an instance begins with, so that a usual pass grows nothing: growing changes the protection of pages, and
/// changes it back after the pass. Zeros take no place in the component.
const FIRST: usize = 1 << 19;

/// The unit of memory in WebAssembly.
const PAGE: usize = 1 << 16;

/// The least that memory grows by, in pages.
const GROWTH: usize = 16;

#[global_allocator]
static ARENA: Arena = Arena { next: Cell::new(0), end: Cell::new(0), first: UnsafeCell::new([0; FIRST]) };

struct Arena {
    /// Where the next piece may begin.
    next: Cell<usize>,
    /// Where what is at hand ends; 0 before the first piece.
    end: Cell<usize>,
    first: UnsafeCell<[u8; FIRST]>,
}

// SAFETY: a plugin has one thread.
unsafe impl Sync for Arena {}

impl Arena {
    /// A piece of what is at hand.
    #[inline]
    fn take(&self, layout: Layout) -> Option<usize> {
        let start = self.next.get().checked_next_multiple_of(layout.align())?;
        let stop = start.checked_add(layout.size()).filter(|stop| *stop <= self.end.get())?;
        self.next.set(stop);
        Some(start)
    }

    /// A piece of new memory: the first time of what the instance begins with, then of what the host adds.
    #[cold]
    #[inline(never)]
    fn grow(&self, layout: Layout) -> Option<usize> {
        if self.end.get() == 0 {
            self.have(self.first.get() as usize, FIRST);
            if let Some(start) = self.take(layout) {
                return Some(start);
            }
        }
        let pages = layout.size().checked_add(layout.align())?.div_ceil(PAGE).max(GROWTH);
        // A refusal is the greatest number, which no address is the product of.
        let start = wasm32::memory_grow::<0>(pages).checked_mul(PAGE)?;
        self.have(start, pages * PAGE);
        self.take(layout)
    }

    /// Goes on in this memory, or in both when it follows on what is at hand.
    fn have(&self, start: usize, size: usize) {
        if start != self.end.get() {
            self.next.set(start);
        }
        self.end.set(start + size);
    }

    fn is_last(&self, piece: *mut u8, layout: Layout) -> bool {
        piece as usize + layout.size() == self.next.get()
    }
}

// SAFETY: a piece is aligned, lies in memory that nothing else uses, and overlaps no other: only the last one is ever
// made larger or smaller where it stands.
unsafe impl GlobalAlloc for Arena {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = self.take(layout).or_else(|| self.grow(layout));
        start.map_or(ptr::null_mut(), |start| start as *mut u8)
    }

    #[inline]
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}

    #[inline(never)]
    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let stop = (piece as usize).checked_add(size).filter(|stop| *stop <= self.end.get());
        if let Some(stop) = stop.filter(|_| self.is_last(piece, layout)) {
            self.next.set(stop);
            return piece;
        }
        // SAFETY: the caller promises that a layout can have this size.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: the new piece, if there is one, has room for so much, and the two do not overlap.
        unsafe {
            let to = self.alloc(wanted);
            if !to.is_null() {
                ptr::copy_nonoverlapping(piece, to, layout.size().min(size));
            }
            to
        }
    }
}
