//! The stream writer: memory that the program writes to by itself, and what it asks for when that is full (`docs/spec/c-abi.md` §6).
//!
//! The struct of the program is a copy of where the library's writer is. Each call begins by taking over how far the program has come
//! ([`Target::sync`]) and ends by telling where it goes on ([`StreamWriter::refresh`]).

use core::cell::RefCell;
use core::ptr;

use crate::abi::StreamWriter;
use crate::flavour::ENCODING_WORDS;
use crate::guard::{Nothing, guard, guard_or};
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
    #[inline(always)]
    pub(crate) fn window(&self) -> Window {
        match self {
            Self::Packet(packet) => packet.window(),
            Self::Heap(heap) => heap.window(),
        }
    }

    /// Takes over what the program has written up to `write_ptr`.
    #[inline(always)]
    fn sync(&mut self, write_ptr: *mut u8) {
        let window = self.window();
        let written = write_ptr.addr().wrapping_sub(window.next.addr());
        // A pointer from elsewhere is no progress.
        if written != 0 && written <= window.room() {
            self.advance(written);
        }
    }

    /// Bytes in the window are written now.
    #[inline(always)]
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

    /// From here on nobody gets what the program writes: there is nothing to write to, or it is broken. There is room for `n` bytes all the same, because the
    /// program writes them without asking.
    #[cold]
    fn write_nowhere(&mut self, n: usize) {
        self.target = ptr::null_mut();
        self.refresh(nowhere(n));
    }

    /// Takes over what the program has written.
    ///
    /// # Safety
    ///
    /// `target` is null or valid, and nobody else uses it.
    #[inline(always)]
    pub(crate) unsafe fn synced(&mut self) -> Option<&mut Target> {
        // SAFETY: the caller's promise.
        let target = unsafe { self.target.as_mut() }?;
        target.sync(self.write_ptr);
        Some(target)
    }
}

impl Nothing for StreamWriter {
    /// Whoever wants to write asks for room first.
    const NOTHING: Self = Self {
        target: ptr::null_mut(),
        begin: ptr::null_mut(),
        end: ptr::null_mut(),
        write_ptr: ptr::null_mut(),
        written_previously: 0,
        encoding: [0; ENCODING_WORDS],
    };
}

/// Bytes of [`nowhere`] at least.
const NOWHERE_BYTES: usize = 4096;

/// Memory that is written to and never read. Of one thread, because two must not write to the same.
fn nowhere(n: usize) -> Window {
    /// Never freed before the thread ends: the program may have kept an address.
    type Pieces = Vec<*mut [u8]>;

    struct Owner(Pieces);

    impl Drop for Owner {
        fn drop(&mut self) {
            for piece in self.0.drain(..) {
                // SAFETY: from `Box::into_raw`; the thread that wrote to it ends.
                drop(unsafe { Box::from_raw(piece) });
            }
        }
    }

    thread_local! {
        static NOWHERE: RefCell<Owner> = const { RefCell::new(Owner(Vec::new())) };
    }

    let make = || Box::into_raw(vec![0; n.max(NOWHERE_BYTES)].into_boxed_slice());
    let piece = NOWHERE.try_with(|pieces| {
        let pieces = &mut pieces.borrow_mut().0;
        let known = pieces.last().copied().filter(|piece| piece.len() >= n);
        known.unwrap_or_else(|| {
            pieces.push(make());
            pieces[pieces.len() - 1]
        })
    });
    // A thread that ends leaks it.
    let piece = piece.unwrap_or_else(|_| make());
    let begin = piece.cast::<u8>();
    Window { begin, next: begin, end: begin.wrapping_add(piece.len()), before: 0 }
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
/// A struct that packet begin or heap buffer create has filled; or null.
pub(crate) unsafe fn update_write_ptr(writer: *mut StreamWriter) {
    guard(|| {
        // SAFETY: the caller's promise.
        if let Some(writer) = unsafe { writer.as_mut() } {
            // SAFETY: as above; its target is null or lives until packet end or heap buffer destroy.
            unsafe { writer.synced() };
        }
    });
}

/// # Safety
///
/// A struct that packet begin or heap buffer create has filled; or null.
pub(crate) unsafe fn new_chunk(writer: *mut StreamWriter) {
    // SAFETY: the caller's promise.
    unsafe { with_room(writer, 1, |_| {}) };
}

/// # Safety
///
/// A struct that packet begin or heap buffer create has filled; or null. And `size` bytes, or null
/// without any.
pub(crate) unsafe fn append_bytes(writer: *mut StreamWriter, src: *const u8, size: usize) {
    // SAFETY: the caller's promise.
    let bytes = unsafe { text::block(src, size) };
    // SAFETY: the caller's promise.
    unsafe { with_room(writer, 0, |target| target.append(bytes)) };
}

/// # Safety
///
/// A struct that packet begin or heap buffer create has filled; or null.
pub(crate) unsafe fn reserve_bytes(writer: *mut StreamWriter, size: usize) {
    // SAFETY: the caller's promise.
    unsafe { with_room(writer, size, |_| {}) };
    // SAFETY: the caller's promise.
    if let Some(writer) = unsafe { writer.as_mut() } {
        // The program writes them; the target learns of it with the next call.
        writer.write_ptr = writer.write_ptr.wrapping_add(size);
    }
}

/// Writes to the target, if there is one, and tells the program of a window with room for `n` bytes, in any case.
///
/// # Safety
///
/// A struct that packet begin or heap buffer create has filled; or null.
unsafe fn with_room(writer: *mut StreamWriter, n: usize, write: impl FnOnce(&mut Target)) {
    let room = || {
        // SAFETY: the caller's promise; the target is null or lives until packet end or heap buffer destroy.
        let target = unsafe { writer.as_mut()?.synced() }?;
        write(target);
        target.make_room(n);
        Some(target.window())
    };
    let window = guard_or(room, || None);
    // SAFETY: the caller's promise.
    let Some(writer) = (unsafe { writer.as_mut() }) else { return };
    match window {
        Some(window) => writer.refresh(window),
        None => writer.write_nowhere(n),
    }
}

/// # Safety
///
/// A struct that packet begin or heap buffer create has filled; or null.
pub(crate) unsafe fn annotate_patch(writer: *mut StreamWriter, patch_addr: *mut u8) -> *mut u8 {
    guard(|| {
        // SAFETY: the caller's promise.
        let Some(writer) = (unsafe { writer.as_mut() }) else { return ptr::null_mut() };
        // SAFETY: as above; its target is null or lives until packet end or heap buffer destroy.
        match unsafe { writer.synced() } {
            Some(Target::Packet(packet)) => packet.annotate_patch(patch_addr),
            Some(Target::Heap(_)) => patch_addr,
            None => ptr::null_mut(),
        }
    })
}
