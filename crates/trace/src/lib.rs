//! Reads Perfetto traces: packets, sequences, interning, clocks and summaries.
