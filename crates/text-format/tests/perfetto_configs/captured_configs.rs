use std::fs;

use esatto_protozero::{Fields, Owned};
use esatto_schema::{TraceConfig, enable_tracing_request, ipc_frame, trace_packet};

use crate::{parse, tests_folder};

/// Removes the fields that the client adds before it sends a config (`docs/spec/cli.md` §5).
fn as_written(mut config: TraceConfig) -> TraceConfig {
    config.trace_uuid_msb = None;
    config.trace_uuid_lsb = None;
    config.statsd_metadata = None;
    config.statsd_logging = None;
    config.enable_extra_guardrails = None;
    config
}

/// Returns the config of the first `EnableTracing` among the calls of a consumer.
fn sent(stream: &[u8]) -> Option<TraceConfig> {
    let mut rest = stream;
    while let Some((length, behind)) = rest.split_first_chunk() {
        let (frame, next) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = next;
        let nested = |bytes, id| Fields::new(bytes).find(|f| f.id == id).map(|f| f.as_bytes());
        let arguments = nested(frame, ipc_frame::field::MSG_INVOKE_METHOD)
            .and_then(|call| nested(call, ipc_frame::invoke_method::field::ARGS_PROTO));
        let config = arguments.and_then(|bytes| nested(bytes, enable_tracing_request::field::TRACE_CONFIG));
        // Other methods have other messages in field 1; a config has buffers or data sources.
        if let Some(config) = config.and_then(|bytes| TraceConfig::decode(bytes).ok()) {
            if !config.buffers.is_empty() {
                return Some(config);
            }
        }
    }
    None
}

/// Returns the config that a trace was recorded with.
fn recorded(trace: &[u8]) -> Option<TraceConfig> {
    let mut packets = Fields::new(trace).map(|f| f.as_bytes());
    let bytes = packets.find_map(|packet| {
        Fields::new(packet).find(|f| f.id == trace_packet::field::TRACE_CONFIG).map(|f| f.as_bytes())
    });
    TraceConfig::decode(bytes?).ok()
}

#[test]
fn each_captured_config_matches_its_text() {
    let mut compared = 0;
    for entry in fs::read_dir(tests_folder().join("captures")).expect("the captures are in the project") {
        let folder = entry.expect("is readable").path();
        let Ok(text) = fs::read_to_string(folder.join("config.pbtx")) else { continue };
        let stream = fs::read(folder.join("consumer.c2s.bin")).expect("each capture has a consumer");
        let config = sent(&stream).unwrap_or_else(|| panic!("{}: no config was sent", folder.display()));
        assert_eq!(as_written(config), parse(&text), "{}", folder.display());
        compared += 1;
    }
    assert!(compared >= 30, "only {compared} captures found");
}

#[test]
fn each_recorded_config_matches_its_text() {
    let mut compared = 0;
    for entry in fs::read_dir(tests_folder().join("traces")).expect("the traces are in the project") {
        let file = entry.expect("is readable").path();
        if file.extension().is_none_or(|extension| extension != "cfg") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("is readable");
        let config = parse(&text);
        compared += 1;
        // The tests of the trace reader cover compressed traces.
        let trace = fs::read(file.with_extension("pftrace")).expect("each config has a trace");
        if let Some(echo) = recorded(&trace) {
            assert_eq!(as_written(echo), config, "{}", file.display());
        }
    }
    assert_eq!(compared, 5);
}
