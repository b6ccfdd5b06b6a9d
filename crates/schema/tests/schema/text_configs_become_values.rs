//! The descriptors are complete enough for prost-reflect to read and print configurations and
//! traces.

use esatto_protozero::Owned;
use esatto_schema::{TraceConfig, TraceReader, sys_stats_config, trace_config};
use prost::Message as _;
use prost_reflect::DynamicMessage;

use crate::{dynamic, message};

const CONFIG: &str = include_str!("../data/official-v56-process-and-sys-stats.cfg");
const TRACE: &[u8] = include_bytes!("../data/official-v56-process-and-sys-stats.pftrace");

#[test]
fn a_text_config_becomes_the_expected_value() {
    let parsed = DynamicMessage::parse_text_format(message("TraceConfig"), CONFIG).unwrap();
    let config = TraceConfig::decode(&parsed.encode_to_vec()).unwrap();
    assert_eq!(config.duration_ms, Some(2500));
    assert_eq!(config.buffers[0].fill_policy, Some(trace_config::buffer_config::FillPolicy::DISCARD));
    let sys_stats = config.data_sources[1].config.as_ref().unwrap().sys_stats_config.as_ref().unwrap();
    assert_eq!(
        sys_stats.stat_counters,
        [sys_stats_config::StatCounters::STAT_CPU_TIMES, sys_stats_config::StatCounters::STAT_FORK_COUNT]
    );
    assert_eq!(config.encode(), parsed.encode_to_vec(), "both encode in the order of the numbers");
}

#[test]
fn the_config_in_the_trace_starts_from_that_text() {
    let parsed = DynamicMessage::parse_text_format(message("TraceConfig"), CONFIG).unwrap();
    let asked = TraceConfig::decode(&parsed.encode_to_vec()).unwrap();
    let echoed = TraceReader::new(TRACE).packet().find_map(|packet| packet.trace_config()).unwrap();
    let echoed = TraceConfig::decode(echoed.as_bytes()).unwrap();
    assert_eq!(echoed.duration_ms, asked.duration_ms);
    for (echoed, asked) in echoed.data_sources.iter().zip(&asked.data_sources) {
        let (echoed, asked) = (echoed.config.as_ref().unwrap(), asked.config.as_ref().unwrap());
        assert_eq!(echoed.name, asked.name);
        assert_eq!(echoed.sys_stats_config, asked.sys_stats_config);
        assert_eq!(echoed.process_stats_config, asked.process_stats_config);
    }
}

#[test]
fn a_trace_is_printed_with_names() {
    let text = dynamic("Trace", TRACE).to_text_format();
    assert!(text.contains("meminfo:[{key:MEMINFO_MEM_TOTAL,value:"), "{text}");
    assert!(!text.contains("\n0x"));
}
