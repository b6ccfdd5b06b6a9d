//! The tracing service as a value: sessions, matching and central buffers, without I/O and clocks.
