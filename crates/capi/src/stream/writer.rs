//! The stream writer: a struct of the program, and the functions that the program calls when its
//! window is full.
//!
//! The struct is a copy of the position of the library's [`Target`]. Each function first takes over
//! the program's position ([`StreamWriter::sync`]), and last gives the program its new window
//! ([`StreamWriter::refresh`]).

use core::cell::RefCell;
use core::ptr::{self, NonNull};

use esatto_shm::TraceWriter;

use super::heap::Heap;
use super::packet::Packet;
use super::window::Window;
use crate::abi::{ENCODING_WORDS, StreamWriter};
use crate::ffi::{Mut, Slice};
use crate::panic_guard::{Fallback, guard, guard_or};

/// Destination of a stream; `impl` of the struct points to it.
pub(crate) enum Target {
    Packet(Packet),
    Heap(Heap),
}

impl Target {
    pub(crate) const PACKET: Self = Self::Packet(Packet::new());

    /// Begins a packet of this writer, if the target is for packets.
    #[inline(always)]
    pub(crate) fn begin_packet(&mut self, writer: NonNull<TraceWriter>) {
        if let Self::Packet(packet) = self {
            packet.begin(writer);
        }
    }

    #[inline(always)]
    pub(crate) fn end_packet(&mut self) {
        if let Self::Packet(packet) = self {
            packet.finish(true);
        }
    }

    /// Ends the packet as if it had never been.
    pub(crate) fn drop_packet(&mut self) {
        if let Self::Packet(packet) = self {
            packet.finish(false);
        }
    }

    /// Forgets the writer of the packet: see [`Packet::abandon`].
    pub(crate) fn abandon_packet(&mut self) {
        if let Self::Packet(packet) = self {
            packet.abandon();
        }
    }

    /// Frees the memory of the packets: see [`Packet::free`].
    pub(crate) fn free_packets(&mut self) {
        if let Self::Packet(packet) = self {
            packet.free();
        }
    }

    /// Returns the packet if it was begun and not ended.
    pub(crate) fn open_packet(&mut self) -> Option<&mut Packet> {
        match self {
            Self::Packet(packet) if packet.is_open() => Some(packet),
            _ => None,
        }
    }

    #[inline(always)]
    fn window(&self) -> Window {
        match self {
            Self::Packet(packet) => packet.window(),
            Self::Heap(heap) => heap.window(),
        }
    }

    /// Takes over the bytes that the program has written up to `write_ptr`.
    #[inline(always)]
    fn sync(&mut self, write_ptr: *mut u8) {
        let window = self.window();
        let written = write_ptr.addr().wrapping_sub(window.next.addr());
        // A pointer outside the window is no progress.
        if written != 0 && written <= window.room() {
            self.advance(written);
        }
    }

    /// Counts bytes in the window as written.
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
            // SAFETY: the window has room for them, and nothing else reads or writes it.
            unsafe { ptr::copy(now.as_ptr(), window.next, now.len()) };
            self.advance(now.len());
            bytes = later;
        }
    }
}

impl StreamWriter {
    /// The struct of a program that has nothing to write to. It asks for room before it writes.
    pub(crate) const EMPTY: Self = Self {
        target: ptr::null_mut(),
        begin: ptr::null_mut(),
        end: ptr::null_mut(),
        write_ptr: ptr::null_mut(),
        written_previously: 0,
        encoding: [0; ENCODING_WORDS],
    };

    /// Makes the struct of a program that begins to write.
    pub(super) fn new(target: *mut Target, window: Window) -> Self {
        let mut writer = Self { target: target.cast(), ..Self::EMPTY };
        writer.refresh(window);
        writer
    }

    /// Makes the struct of a program that begins to write to `target`.
    ///
    /// # Safety
    ///
    /// `target` is valid, and nothing else uses it now.
    #[inline(always)]
    pub(crate) unsafe fn of(target: *mut Target) -> Self {
        // SAFETY: the caller's promise.
        let window = unsafe { &*target }.window();
        Self::new(target, window)
    }

    fn refresh(&mut self, window: Window) {
        self.begin = window.begin;
        self.write_ptr = window.next;
        self.end = window.end;
        self.written_previously = window.before;
    }

    /// Drops all that the program writes from here on, because there is no target or it is broken.
    /// There is still room for `n` bytes, because the program writes them without a check.
    #[cold]
    fn discard(&mut self, n: usize) {
        self.target = ptr::null_mut();
        self.refresh(discarded_window(n));
    }

    /// Takes over the bytes that the program has written, and returns the target.
    ///
    /// By the contract the library has filled the struct, and its target is null or was not
    /// destroyed.
    #[inline(always)]
    pub(crate) fn sync(&mut self) -> Option<&mut Target> {
        // SAFETY: the contract, as above. Nothing else uses the target while the library does.
        let target = unsafe { self.target.cast::<Target>().as_mut() }?;
        target.sync(self.write_ptr);
        Some(target)
    }
}

impl Fallback for StreamWriter {
    const FALLBACK: Self = Self::EMPTY;
}

/// Smallest allocation of [`discarded_window`].
const DISCARDED_BYTES: usize = 4096;

/// Returns memory that is written to and never read. Each thread has its own, because two must not
/// write to the same memory.
fn discarded_window(n: usize) -> Window {
    /// Not freed before the thread ends, because the program may have kept an address.
    type Pieces = Vec<*mut [u8]>;

    struct Owner(Pieces);

    impl Drop for Owner {
        fn drop(&mut self) {
            for piece in self.0.drain(..) {
                // SAFETY: from `Box::into_raw`. The thread that wrote to it ends.
                drop(unsafe { Box::from_raw(piece) });
            }
        }
    }

    thread_local! {
        static PIECES: RefCell<Owner> = const { RefCell::new(Owner(Vec::new())) };
    }

    let make = || Box::into_raw(vec![0; n.max(DISCARDED_BYTES)].into_boxed_slice());
    let piece = PIECES.try_with(|pieces| {
        let pieces = &mut pieces.borrow_mut().0;
        let known = pieces.last().copied().filter(|piece| piece.len() >= n);
        known.unwrap_or_else(|| {
            pieces.push(make());
            pieces[pieces.len() - 1]
        })
    });
    // If the thread is ending, the memory is leaked.
    let piece = piece.unwrap_or_else(|_| make());
    let begin = piece.cast::<u8>();
    Window { begin, next: begin, end: begin.wrapping_add(piece.len()), before: 0 }
}

/// Exports the functions of the stream writer under the names that one version of the ABI has.
macro_rules! export_writer {
    ($update_write_ptr:ident, $new_chunk:ident, $append_bytes:ident, $reserve_bytes:ident, $annotate_patch:ident) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $update_write_ptr(writer: $crate::ffi::Mut<'_, $crate::abi::StreamWriter>) {
            $crate::stream::writer::update_write_ptr(writer);
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $new_chunk(writer: $crate::ffi::Mut<'_, $crate::abi::StreamWriter>) {
            $crate::stream::writer::new_chunk(writer);
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $append_bytes(
            writer: $crate::ffi::Mut<'_, $crate::abi::StreamWriter>,
            src: *const u8,
            size: usize,
        ) {
            // SAFETY: the contract: `src` has `size` bytes, or is null.
            let bytes = unsafe { $crate::ffi::Slice::new(src, size) };
            $crate::stream::writer::append_bytes(writer, bytes);
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $reserve_bytes(writer: $crate::ffi::Mut<'_, $crate::abi::StreamWriter>, size: usize) {
            $crate::stream::writer::reserve_bytes(writer, size);
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $annotate_patch(
            writer: $crate::ffi::Mut<'_, $crate::abi::StreamWriter>,
            patch_addr: *mut u8,
        ) -> *mut u8 {
            $crate::stream::writer::annotate_patch(writer, patch_addr)
        }
    };
}

pub(crate) use export_writer;

pub(crate) fn update_write_ptr(writer: Mut<'_, StreamWriter>) {
    guard(|| {
        if let Some(writer) = writer.get() {
            writer.sync();
        }
    });
}

pub(crate) fn new_chunk(writer: Mut<'_, StreamWriter>) {
    with_room(writer, 1, |_| {});
}

pub(crate) fn append_bytes(writer: Mut<'_, StreamWriter>, bytes: Slice<'_, u8>) {
    with_room(writer, 0, |target| target.append(bytes.get()));
}

pub(crate) fn reserve_bytes(writer: Mut<'_, StreamWriter>, size: usize) {
    if let Some(writer) = with_room(writer, size, |_| {}) {
        // The program writes these bytes. The next call tells the target.
        writer.write_ptr = writer.write_ptr.wrapping_add(size);
    }
}

/// Calls `write` with the target, if there is one. In any case the program gets a window with room
/// for `n` bytes.
fn with_room<'w>(
    writer: Mut<'w, StreamWriter>,
    n: usize,
    write: impl FnOnce(&mut Target),
) -> Option<&'w mut StreamWriter> {
    let mut writer = writer.get();
    let room = || {
        let target = writer.as_mut()?.sync()?;
        write(target);
        target.make_room(n);
        Some(target.window())
    };
    let window = guard_or(room, || None);
    let writer = writer?;
    match window {
        Some(window) => writer.refresh(window),
        None => writer.discard(n),
    }
    Some(writer)
}

pub(crate) fn annotate_patch(writer: Mut<'_, StreamWriter>, patch_addr: *mut u8) -> *mut u8 {
    guard(|| {
        let Some(writer) = writer.get() else { return ptr::null_mut() };
        match writer.sync() {
            Some(Target::Packet(packet)) => packet.annotate_patch(patch_addr),
            Some(Target::Heap(_)) => patch_addr,
            None => ptr::null_mut(),
        }
    })
}
