//! The bump allocator of a component, behind the feature `arena`. An instance lives for one pass, so the allocator never
//! frees memory. It resizes only the last allocation in place.
//!
//! Not the crate bumpalo: it is no global allocator, and serde allocates in that one.
#![allow(unsafe_code)]

use std::{
    alloc::{GlobalAlloc, Layout},
    arch::wasm32,
    cell::{Cell, UnsafeCell},
    ptr,
};

/// The initial memory of an instance, in bytes. It lets a usual pass run without memory growth, which changes the
/// protection of pages and changes it back after the pass. The zeros take no space in the component.
const FIRST: usize = 1 << 19;

/// The size, in bytes, of a WebAssembly page.
const PAGE: usize = 1 << 16;

/// The minimum growth of memory, in pages.
const GROWTH: usize = 16;

#[global_allocator]
static ARENA: Arena = Arena { next: Cell::new(0), end: Cell::new(0), first: UnsafeCell::new([0; FIRST]) };

struct Arena {
    /// The address at which the next allocation may begin.
    next: Cell<usize>,
    /// The address at which the available memory ends; 0 before the first allocation.
    end: Cell<usize>,
    first: UnsafeCell<[u8; FIRST]>,
}

// SAFETY: a plugin runs on one thread.
unsafe impl Sync for Arena {}

impl Arena {
    /// Allocates from the available memory. Returns None if the memory is too small.
    #[inline]
    fn take(&self, layout: Layout) -> Option<usize> {
        // Alignments are powers of two, so that a mask does; a division would take longer than everything else here.
        let mask = layout.align() - 1;
        let start = self.next.get().checked_add(mask)? & !mask;
        let stop = start.checked_add(layout.size()).filter(|stop| *stop <= self.end.get())?;
        self.next.set(stop);
        Some(start)
    }

    /// Allocates from new memory: on the first call from the initial memory, later from memory that the host adds.
    /// Returns None if the host adds no memory.
    #[cold]
    #[inline(never)]
    fn grow(&self, layout: Layout) -> Option<usize> {
        if self.end.get() == 0 {
            self.add_region(self.first.get() as usize, FIRST);
            if let Some(start) = self.take(layout) {
                return Some(start);
            }
        }
        let pages = layout.size().checked_add(layout.align())?.div_ceil(PAGE).max(GROWTH);
        // On failure `memory_grow` returns usize::MAX, and the multiplication overflows.
        let start = wasm32::memory_grow::<0>(pages).checked_mul(PAGE)?;
        self.add_region(start, pages * PAGE);
        self.take(layout)
    }

    /// Makes a region available. A region that starts at the end of the available memory extends it; any other region
    /// replaces it.
    fn add_region(&self, start: usize, size: usize) {
        if start != self.end.get() {
            self.next.set(start);
        }
        self.end.set(start + size);
    }

    fn is_last(&self, allocation: *mut u8, layout: Layout) -> bool {
        allocation as usize + layout.size() == self.next.get()
    }
}

// SAFETY: an allocation is aligned, lies in memory that nothing else uses, and overlaps no other allocation: only the
// last allocation is resized in place.
unsafe impl GlobalAlloc for Arena {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = self.take(layout).or_else(|| self.grow(layout));
        start.map_or(ptr::null_mut(), |start| start as *mut u8)
    }

    #[inline]
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}

    #[inline(never)]
    unsafe fn realloc(&self, allocation: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let stop = (allocation as usize).checked_add(size).filter(|stop| *stop <= self.end.get());
        if let Some(stop) = stop.filter(|_| self.is_last(allocation, layout)) {
            self.next.set(stop);
            return allocation;
        }
        // SAFETY: the caller guarantees that the size is valid for a layout with this alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: the new allocation, if it succeeded, has at least the copied size and does not overlap the old one.
        unsafe {
            let to = self.alloc(wanted);
            if !to.is_null() {
                ptr::copy_nonoverlapping(allocation, to, layout.size().min(size));
            }
            to
        }
    }
}
