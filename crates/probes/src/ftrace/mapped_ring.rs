//! [`MappedRing`]: the ring buffer of a CPU, mapped into memory.
//!
//! Kernels since 6.10 let a program map the pages of `trace_pipe_raw`. The first page of the
//! mapping tells which of the others belongs to the reader; an ioctl takes the next one from the
//! writer. While a ring is mapped, the kernel refuses to resize it and to splice from it, and reads
//! of others copy events instead of taking pages.
//!
//! No data source uses it, because it costs more than `read`: 2.4 µs of CPU per page of marks
//! instead of 1.2 µs (kernel 6.18, x86-64, `mapping_costs_more_than_reading`). To give a page to a
//! reader that has mapped it, the kernel walks over all of its events, while `read` swaps and
//! copies the page. The module stays for the measurement on other kernels.
//!
//! ```text
//!   mapping:  meta page │ sub-buffer 0 │ sub-buffer 1 │ …
//!                 └ reader.id ──────────────▲
//! ```

#![allow(unsafe_code, reason = "a mapping that the kernel writes to")]

use core::ptr::NonNull;
use std::fs::File;
use std::io;

use rustix::ioctl::{NoArg, opcode};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Takes the next page from the writer.
const GET_READER: rustix::ioctl::Opcode = opcode::none(b'R', 0x20);

/// Largest meta page and sub-buffer that are taken for valid: 8 MiB.
const MAX_PART_BYTES: usize = 8 << 20;
/// Largest mapping: 64 GiB.
const MAX_MAPPING_BYTES: usize = 64 << 30;

/// Offsets in `struct trace_buffer_meta`.
const META_PAGE_SIZE: usize = 0;
const SUBBUF_SIZE: usize = 8;
const NR_SUBBUFS: usize = 12;
const READER_ID: usize = 24;
/// Bytes of the struct that are read.
const META_BYTES: usize = 32;

/// The mapped ring buffer of a CPU.
#[derive(Debug)]
pub(crate) struct MappedRing {
    memory: NonNull<u8>,
    len: usize,
    meta_size: usize,
    page_size: usize,
    pages: usize,
}

// SAFETY: the mapping belongs to no thread, and is only read.
unsafe impl Send for MappedRing {}

impl MappedRing {
    /// Maps the ring of a pipe.
    ///
    /// # Errors
    ///
    /// The kernel cannot do it, or says of the ring what cannot be.
    pub(crate) fn map(pipe: &File) -> io::Result<Self> {
        let first = Self::map_bytes(pipe, rustix::param::page_size())?;
        let (meta_size, page_size) = (first.word(META_PAGE_SIZE) as usize, first.word(SUBBUF_SIZE) as usize);
        let pages = first.word(NR_SUBBUFS) as usize;
        let is_valid = |size: usize| (META_BYTES..=MAX_PART_BYTES).contains(&size) && size.is_power_of_two();
        let len = pages.checked_mul(page_size).and_then(|len| len.checked_add(meta_size));
        match len.filter(|len| is_valid(meta_size) && is_valid(page_size) && *len <= MAX_MAPPING_BYTES) {
            Some(len) => {
                drop(first);
                let mut ring = Self::map_bytes(pipe, len)?;
                (ring.meta_size, ring.page_size, ring.pages) = (meta_size, page_size, pages);
                Ok(ring)
            }
            None => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn map_bytes(pipe: &File, len: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let memory = unsafe { mmap(core::ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, pipe, 0) }?;
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { memory, len, meta_size: 0, page_size: 0, pages: 0 })
    }

    /// Takes the next page of the writer, or what it has added to the page that the reader has.
    /// `pipe` is the one that was mapped. Returns the number of the reader's page.
    pub(crate) fn advance(&self, pipe: &File) -> io::Result<u32> {
        // SAFETY: this call of trace_pipe_raw takes no argument and writes only to the mapping.
        unsafe { rustix::ioctl::ioctl(pipe, NoArg::<GET_READER>::new()) }?;
        Ok(self.word(READER_ID))
    }

    /// Copies a page. Returns false if there is none of this number.
    pub(crate) fn copy_page(&self, number: u32, page: &mut [u8]) -> bool {
        let number = number as usize;
        if number >= self.pages || page.len() != self.page_size {
            return false;
        }
        // SAFETY: `map` has checked that all pages are in the mapping, which lives as long as
        // `self`. The kernel may write to the page meanwhile: the copy then has a mix, whose events
        // up to the length that was read before are whole.
        unsafe {
            let source = self.memory.as_ptr().add(self.meta_size + number * self.page_size);
            core::ptr::copy_nonoverlapping(source, page.as_mut_ptr(), self.page_size);
        }
        true
    }

    /// Reads a word of the meta page.
    fn word(&self, at: usize) -> u32 {
        debug_assert!(at + 4 <= META_BYTES);
        // SAFETY: the meta page is the begin of the mapping; its fields are aligned. The kernel
        // writes them, so the word is read once and as it is.
        unsafe { self.memory.as_ptr().add(at).cast::<u32>().read_volatile() }
    }
}

impl Drop for MappedRing {
    fn drop(&mut self) {
        // SAFETY: this is the mapping of `map_bytes`, and nothing refers to it any more.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), self.len) };
    }
}
