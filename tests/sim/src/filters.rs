//! Sessions with a filter. The simulator filters the expected packets and compares the results.

use std::ops::RangeInclusive;

use esatto_filter::{Builder, Filter, MessageId, Program, Version};
use esatto_schema::TraceConfig;
use esatto_schema::trace_config::TraceFilter;

use crate::rng::Rng;

/// Fields of `TracePacket` that pass: all fields that a packet here has, or all except the content
/// of honest packets.
const ALLOWED: [&[RangeInclusive<u32>]; 2] = [&[1..=8191], &[1..=899, 901..=8191]];

/// Builds a filter of either kind.
pub(crate) fn some(rng: &mut Rng) -> TraceFilter {
    let mut builder = Builder::new(Version::V2);
    builder.nested(1, MessageId(1)).expect("a field of Trace").end_message();
    for fields in rng.pick(&ALLOWED) {
        builder.pass_range(fields.clone()).expect("fields in order");
    }
    builder.end_message();
    let bytecode = builder.build().expect("complete bytecode").bytecode;
    TraceFilter { bytecode_v2: Some(bytecode), ..Default::default() }
}

/// Returns the filter of a config, for packets.
pub(crate) fn of(config: &TraceConfig) -> Option<Filter> {
    let bytecode = config.trace_filter.as_ref()?.bytecode_v2.as_ref()?;
    let program = Program::load(bytecode).expect("bytecode that the service took");
    Some(Filter::new(program).with_root(&[1]).expect("bytecode for traces"))
}
