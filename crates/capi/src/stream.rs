//! The stream writer: memory that the program writes to by itself, and what it asks for when that is full (`docs/spec/c-abi.md` §6).
//!
//! The struct of the program is a copy of where the library's writer is. Each call begins by taking over how far the program has come
//! ([`Target::sync`]) and ends by telling where it goes on ([`StreamWriter::refresh`]).

use core::ptr;

use crate::abi::StreamWriter;
use crate::flavour::ENCODING_WORDS;
use crate::heap::Heap;
use crate::packet::Packet;
use crate::text;

/// What a stream writes to; `impl` of the struct points to it.
pub(crate) enum Target {
    Packet(Packet),
    Heap(Heap),
}

/// The memory that is being written to.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub(crate) begin: *mut u8,
    /// Where the next byte goes, as far as the target knows.
    pub(crate) next: *mut u8,
    pub(crate) end: *mut u8,
    /// Bytes written before `begin`.
    pub(crate) before: usize,
}

impl Window {
    pub(crate) const NONE: Self =
        Self { begin: ptr::null_mut(), next: ptr::null_mut(), end: ptr::null_mut(), before: 0 };

    pub(crate) fn room(&self) -> usize {
        self.end.addr() - self.next.addr()
    }
}

impl Target {
    pub(crate) fn window(&self) -> Window {
        match self {
            Self::Packet(packet) => packet.window(),
            Self::Heap(heap) => heap.window(),
        }
    }

    /// Takes over what the program has written up to `write_ptr`.
    fn sync(&mut self, write_ptr: *mut u8) {
        let window = self.window();
        let written = write_ptr.addr().wrapping_sub(window.next.addr());
        // A pointer from elsewhere is no progress.
        if written != 0 && written <= window.room() {
            self.advance(written);
        }
    }

    /// Bytes in the window are written now.
    fn advance(&mut self, n: usize) {
        match self {
            Self::Packet(packet) => packet.advance(n),
            Self::Heap(heap) => heap.advance(n),
        }
    }

    /// Makes a window with room for `n` bytes.
    fn make_room(&mut self, n: usize) {
        match self {
            Self::Packet(packet) => packet.make_room(n),
            Self::Heap(heap) => heap.make_room(n),
        }
    }

    fn append(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            self.make_room(1);
            let window = self.window();
            let (now, later) = bytes.split_at(bytes.len().min(window.room()));
            // SAFETY: the window has room for them, and nobody else reads or writes it.
            unsafe { ptr::copy(now.as_ptr(), window.next, now.len()) };
            self.advance(now.len());
            bytes = later;
        }
    }
}

impl StreamWriter {
    /// A struct for a program that begins to write.
    pub(crate) fn new(target: *mut Target, window: Window) -> Self {
        let mut writer = Self {
            target,
            begin: ptr::null_mut(),
            end: ptr::null_mut(),
            write_ptr: ptr::null_mut(),
            written_previously: 0,
            encoding: [0; ENCODING_WORDS],
        };
        writer.refresh(window);
        writer
    }

    fn refresh(&mut self, window: Window) {
        self.begin = window.begin;
        self.write_ptr = window.next;
        self.end = window.end;
        self.written_previously = window.before;
    }

    /// Takes over what the program has written.
    ///
    /// # Safety
    ///
    /// `target` is null or valid, and nobody else uses it.
    pub(crate) unsafe fn synced(&mut self) -> Option<&mut Target> {
        // SAFETY: the caller's promise.
        let target = unsafe { self.target.as_mut() }?;
        target.sync(self.write_ptr);
        Some(target)
    }
}

/// The functions of the stream writer, by the names that they have in one ABI.
macro_rules! export_writer {
    ($update_write_ptr:ident, $new_chunk:ident, $append_bytes:ident, $reserve_bytes:ident, $annotate_patch:ident) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $update_write_ptr(writer: *mut StreamWriter) {
            // SAFETY: the contract.
            unsafe { stream::update_write_ptr(writer) };
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $new_chunk(writer: *mut StreamWriter) {
            // SAFETY: the contract.
            unsafe { stream::new_chunk(writer) };
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $append_bytes(writer: *mut StreamWriter, src: *const u8, size: usize) {
            // SAFETY: the contract.
            unsafe { stream::append_bytes(writer, src, size) };
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $reserve_bytes(writer: *mut StreamWriter, size: usize) {
            // SAFETY: the contract.
            unsafe { stream::reserve_bytes(writer, size) };
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $annotate_patch(writer: *mut StreamWriter, patch_addr: *mut u8) -> *mut u8 {
            // SAFETY: the contract.
            unsafe { stream::annotate_patch(writer, patch_addr) }
        }
    };
}

pub(crate) use export_writer;

/// # Safety
///
/// A struct that packet begin or heap buffer create has filled, and that was not ended or destroyed; or null.
pub(crate) unsafe fn update_write_ptr(writer: *mut StreamWriter) {
    // SAFETY: the caller's promise.
    if let Some(writer) = unsafe { writer.as_mut() } {
        // SAFETY: as above; its target lives until packet end or heap buffer destroy.
        unsafe { writer.synced() };
    }
}

/// # Safety
///
/// A struct that packet begin or heap buffer create has filled, and that was not ended or destroyed; or null.
pub(crate) unsafe fn new_chunk(writer: *mut StreamWriter) {
    // SAFETY: the caller's promise.
    let Some(writer) = (unsafe { writer.as_mut() }) else { return };
    // SAFETY: as above.
    let Some(target) = (unsafe { writer.synced() }) else { return };
    target.make_room(1);
    let window = target.window();
    writer.refresh(window);
}

/// # Safety
///
/// A struct that packet begin or heap buffer create has filled, and that was not ended or destroyed; or null. And `size` bytes, or null
/// without any.
pub(crate) unsafe fn append_bytes(writer: *mut StreamWriter, src: *const u8, size: usize) {
    // SAFETY: the caller's promise.
    let Some(writer) = (unsafe { writer.as_mut() }) else { return };
    // SAFETY: as above.
    let Some(target) = (unsafe { writer.synced() }) else { return };
    // SAFETY: the caller's promise.
    target.append(unsafe { text::block(src, size) });
    let window = target.window();
    writer.refresh(window);
}

/// # Safety
///
/// A struct that packet begin or heap buffer create has filled, and that was not ended or destroyed; or null.
pub(crate) unsafe fn reserve_bytes(writer: *mut StreamWriter, size: usize) {
    // SAFETY: the caller's promise.
    let Some(writer) = (unsafe { writer.as_mut() }) else { return };
    // SAFETY: as above.
    let Some(target) = (unsafe { writer.synced() }) else { return };
    target.make_room(size);
    let window = target.window();
    writer.refresh(window);
    // The program writes them; the target learns of it with the next call.
    writer.write_ptr = window.next.wrapping_add(size);
}

/// # Safety
///
/// A struct that packet begin or heap buffer create has filled, and that was not ended or destroyed; or null.
pub(crate) unsafe fn annotate_patch(writer: *mut StreamWriter, patch_addr: *mut u8) -> *mut u8 {
    // SAFETY: the caller's promise.
    let Some(writer) = (unsafe { writer.as_mut() }) else { return ptr::null_mut() };
    // SAFETY: as above.
    match unsafe { writer.synced() } {
        Some(Target::Packet(packet)) => packet.annotate_patch(patch_addr),
        Some(Target::Heap(_)) => patch_addr,
        None => ptr::null_mut(),
    }
}
