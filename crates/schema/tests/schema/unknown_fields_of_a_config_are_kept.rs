//! A configuration from a newer client is returned with all its fields (`docs/spec/protozero.md`
//! §10).

use esatto_protozero::{Fields, Owned};
use esatto_schema::{EnableTracingRequest, IPCFrame, TraceConfig};

use crate::canonical;

/// Returns the configuration that a client sent.
fn captured() -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/captures/writer-basic/consumer.c2s.bin");
    let mut stream = &std::fs::read(path).unwrap()[..];
    while let Some((length, rest)) = stream.split_first_chunk() {
        let (frame, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        stream = rest;
        let call = IPCFrame::decode(frame).unwrap().msg_invoke_method.unwrap_or_default();
        let request = EnableTracingRequest::decode(&call.args_proto.unwrap_or_default()).unwrap();
        if let Some(config) = request.trace_config {
            return config.encode();
        }
    }
    panic!("no EnableTracing in the capture");
}

#[test]
fn unknown_fields_follow_the_known_ones_at_any_depth() {
    let mut config = TraceConfig::decode(&captured()).unwrap();
    assert_eq!(config.data_sources[0].config.as_ref().unwrap().name.as_ref().unwrap(), &"spec.test");
    assert_eq!(config.duration_ms, Some(900));

    // Fields of a newer client, unknown to this schema.
    let newer = b"\xf8\xff\x3f\x2a\x82\x80\x40\x01x"; // 131071: 42, 131072: "x"
    config.unknown_fields = newer.to_vec();
    config.buffers[0].unknown_fields = newer.to_vec();
    config.data_sources[0].config.as_mut().unwrap().unknown_fields = newer.to_vec();

    let bytes = config.encode();
    assert!(bytes.ends_with(newer));
    let again = TraceConfig::decode(&bytes).unwrap();
    assert_eq!(again, config);
    assert_eq!(again.encode(), bytes);
    assert_eq!(canonical("TraceConfig", &again.encode()), canonical("TraceConfig", &bytes));
    assert!(Fields::new(&bytes).check().is_ok());
}
