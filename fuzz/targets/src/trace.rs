//! Traces.

use esatto_trace::{Summary, Trace};

use crate::bytes::message;

/// A trace, read as a summary and as a whole.
pub fn trace_file(bytes: &[u8]) {
    let summary = Summary::read(bytes);
    let _ = (summary.to_string(), summary.to_json().to_string());
    let trace = Trace::read(bytes);
    assert_eq!(trace.slices.len() as u64, summary.slices.count);
    assert_eq!(trace.flows.len() as u64, summary.flows);
}

/// One packet of a trace.
pub fn trace_packet(bytes: &[u8]) {
    trace_file(&message(1, bytes));
}
