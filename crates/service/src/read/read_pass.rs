//! One read pass: packets go from the service and its buffers through filter and compression to a
//! sink.
//!
//! ```text
//! service packets, buffers ─ filter ─┐
//! statistics ────────────────────────┴ compression ─ sink
//! ```

use esatto_schema::TraceReader;
use esatto_schema::trace_stats::FilterStats;

use crate::read::compression::Codec;
use crate::read::file_sink::FileSink;
use crate::read::packet_sink::PacketSink;
use crate::read::trace_filter::TraceFilter;

/// A destination of the service's own packets.
pub(crate) trait OwnPackets {
    /// Takes a packet. Returns false if no more packets are accepted.
    fn put_own(&mut self, packet: &[u8]) -> bool;

    /// Takes a packet that no filter changes.
    fn put_unfiltered(&mut self, packet: &[u8]) -> bool;

    /// Returns the statistics of the filter so far.
    fn filter_stats(&self) -> Option<FilterStats>;
}

/// A read pass under way.
#[derive(Debug)]
pub(crate) struct ReadPass<'a, S> {
    filter: Option<TraceFilter>,
    /// Packets that wait for their compression.
    collected: Option<(Codec, FileSink)>,
    sink: &'a mut S,
    bytes: usize,
}

impl<'a, S: PacketSink> ReadPass<'a, S> {
    pub(crate) fn new(filter: Option<TraceFilter>, codec: Option<Codec>, sink: &'a mut S) -> Self {
        Self { filter, collected: codec.map(|codec| (codec, FileSink::new(Vec::new(), None))), sink, bytes: 0 }
    }

    /// Returns the bytes of the packets so far, as they were before the filter.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the work of the filter so far.
    #[inline]
    pub(crate) fn work(&self) -> u64 {
        self.filter.as_ref().map_or(0, TraceFilter::work)
    }

    /// Takes a packet from the session's buffer of this index, with the fields that the service
    /// appends to it.
    #[inline]
    pub(crate) fn put_buffered<'s>(
        &mut self,
        buffer: usize,
        slices: impl Iterator<Item = &'s [u8]> + Clone,
        trailer: &'s [u8],
    ) -> bool {
        self.put(Some(buffer), slices, trailer)
    }

    #[inline]
    fn put<'s>(
        &mut self,
        buffer: Option<usize>,
        slices: impl Iterator<Item = &'s [u8]> + Clone,
        trailer: &'s [u8],
    ) -> bool {
        self.bytes += slices.clone().map(<[u8]>::len).sum::<usize>() + trailer.len();
        match &mut self.filter {
            None => Self::forward(&mut self.collected, self.sink, slices, trailer),
            Some(filter) => {
                let packet = filter.apply(buffer, slices, trailer);
                Self::forward(&mut self.collected, self.sink, [packet].into_iter(), &[])
            }
        }
    }

    #[inline]
    fn forward<'s>(
        collected: &mut Option<(Codec, FileSink)>,
        sink: &mut S,
        slices: impl Iterator<Item = &'s [u8]> + Clone,
        trailer: &'s [u8],
    ) -> bool {
        match collected {
            None => sink.put(slices, trailer),
            Some((_, collected)) => collected.put(slices, trailer),
        }
    }

    /// Compresses and passes on the collected packets, and returns the filter.
    pub(crate) fn finish(self) -> Option<TraceFilter> {
        if let Some((codec, collected)) = self.collected {
            let (trace, _) = collected.into_bytes();
            match codec.packet(&trace) {
                _ if trace.is_empty() => {}
                Some(packet) => drop(self.sink.put([&packet[..]].into_iter(), &[])),
                None => {
                    for packet in TraceReader::new(&trace).packet() {
                        self.sink.put([packet.as_bytes()].into_iter(), &[]);
                    }
                }
            }
        }
        self.filter
    }
}

impl<S: PacketSink> OwnPackets for ReadPass<'_, S> {
    fn put_own(&mut self, packet: &[u8]) -> bool {
        self.put(None, [packet].into_iter(), &[])
    }

    fn put_unfiltered(&mut self, packet: &[u8]) -> bool {
        if let Some(filter) = &mut self.filter {
            filter.pass(packet.len());
        }
        self.bytes += packet.len();
        Self::forward(&mut self.collected, self.sink, [packet].into_iter(), &[])
    }

    fn filter_stats(&self) -> Option<FilterStats> {
        self.filter.as_ref().map(TraceFilter::stats)
    }
}
