//! The context of a data source's trace point.

use core::fmt;
use std::sync::Arc;

use esatto_schema::TracePacketWriter;
use esatto_shm::{Packet, TraceWriter};

use super::DataSource;
use super::writer::Writer;
use crate::clock;

/// One instance, in a trace point: the sequence of packets that this thread writes for it, and its
/// state.
///
/// Each packet is encoded in place in shared memory. The trace contains a packet completely or not
/// at all. A packet that does not fit is dropped and marked ([`drop_count`](Self::drop_count)). A
/// packet that is written after the end of the session is lost.
pub struct Context<'a, T: DataSource> {
    writer: &'a mut Writer<T>,
}

/// The parts of a [`Context`], for code that needs several of them at once.
#[derive(Debug)]
pub struct Parts<'a, T: DataSource> {
    /// The writer of packets.
    pub packets: Packets<'a>,
    /// See [`Context::thread_state`].
    pub thread_state: &'a mut T::ThreadState,
    /// See [`Context::incremental_state`].
    pub incremental_state: &'a mut T::IncrementalState,
}

/// Writes packets of one sequence.
#[derive(Debug)]
pub struct Packets<'a> {
    writer: &'a mut TraceWriter,
}

impl Packets<'_> {
    /// Begins a packet; it ends when it is dropped.
    #[inline]
    pub fn new_packet(&mut self) -> Packet<'_> {
        self.writer.new_packet()
    }

    /// Writes a packet.
    #[inline]
    pub fn packet<R>(&mut self, write: impl FnOnce(&mut TracePacketWriter<'_>) -> R) -> R {
        let mut packet = self.writer.new_packet();
        let mut fields = packet.typed();
        write(&mut fields)
    }
}

impl<'a, T: DataSource> Context<'a, T> {
    pub(super) const fn new(writer: &'a mut Writer<T>) -> Self {
        Self { writer }
    }

    /// Writes a packet.
    #[inline]
    pub fn packet<R>(&mut self, write: impl FnOnce(&mut TracePacketWriter<'_>) -> R) -> R {
        Packets { writer: &mut self.writer.packets }.packet(write)
    }

    /// Begins a packet, for fields without a method in the schema, or for code that is not nested.
    /// The packet ends when it is dropped.
    #[inline]
    pub fn new_packet(&mut self) -> Packet<'_> {
        self.writer.packets.new_packet()
    }

    /// Returns packets and state, to use them together.
    #[inline]
    pub fn parts(&mut self) -> Parts<'_, T> {
        let Writer { packets, thread_state, incremental_state, .. } = &mut *self.writer;
        Parts { packets: Packets { writer: packets }, thread_state, incremental_state }
    }

    /// Writes a packet of no bytes, unless nothing was written since the last one. With older
    /// libraries, services that read the memory see a packet only when the next one has begun. With
    /// this library, they see it at once.
    pub fn add_empty_packet(&mut self) {
        if self.writer.packets.written() != self.writer.written_when_emptied {
            drop(self.writer.packets.new_packet());
            self.writer.written_when_emptied = self.writer.packets.written();
        }
    }

    /// Returns the current time, in nanoseconds of the default clock for timestamps.
    #[inline]
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    /// Hands the packets of this thread to the service before the chunk of shared memory is full.
    /// Call it before a thread sleeps for long, or before another thread completes a
    /// [`Stop`](crate::Stop) or [`Flush`](crate::Flush).
    pub fn flush(&mut self) {
        self.writer.packets.flush();
    }

    /// As [`flush`](Self::flush). `done` runs on the control thread when the service has the data.
    /// If the connection ends first, `done` is dropped.
    pub fn flush_with(&mut self, done: impl FnOnce() + Send + 'static) {
        self.writer.packets.flush_with(done);
    }

    /// Returns how many bytes this thread has written for this instance, including dropped packets.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.writer.packets.written()
    }

    /// Returns how often this thread began to drop packets because shared memory was full.
    #[must_use]
    pub fn drop_count(&self) -> u64 {
        self.writer.packets.drop_count()
    }

    /// Returns the instance itself; `None` if it has ended since the trace point began. It lives at
    /// least as long as the result. Takes a short lock.
    #[must_use]
    pub fn source(&self) -> Option<Arc<T>> {
        self.writer.instance.object()
    }

    /// Returns the number of the instance, 0 to 7, until it ends.
    #[must_use]
    pub const fn instance(&self) -> usize {
        self.writer.slot
    }

    /// Returns the state of this thread for this instance.
    #[inline]
    pub const fn thread_state(&mut self) -> &mut T::ThreadState {
        &mut self.writer.thread_state
    }

    /// Returns the state that readers of the trace share as long as nothing was lost.
    ///
    /// It is reset for a new writer, after the service asked for it, and after packets were
    /// dropped.
    #[inline]
    pub const fn incremental_state(&mut self) -> &mut T::IncrementalState {
        &mut self.writer.incremental_state
    }

    /// True in a trace point that finds its incremental state new: its first packet must set
    /// `SEQ_INCREMENTAL_STATE_CLEARED` in `sequence_flags`, if the data source uses interning.
    #[inline]
    #[must_use]
    pub const fn is_state_new(&self) -> bool {
        self.writer.state_is_new
    }
}

impl<T: DataSource> fmt::Debug for Context<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("instance", &self.writer.slot).finish_non_exhaustive()
    }
}
