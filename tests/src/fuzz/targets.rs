//! The functions.

use crate::wire;
use esatto_protozero::{Fields, Owned, Value};
use esatto_schema::{CommitDataRequest, DataSourceDescriptor, TraceConfig};
use esatto_shm::abi::PageSize;
use esatto_shm::{Fragment, Fragments, PrivateRegion, ServiceRegion};
use prost_reflect::{DescriptorPool, MessageDescriptor};
use std::sync::{Arc, LazyLock};

/// One parser.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Name of the target.
    pub name: &'static str,
    /// Takes any bytes; panics if something is wrong with the parser.
    pub run: fn(&[u8]),
    /// Selects the captures and traces that are good seeds.
    pub is_seed: fn(&str) -> bool,
    /// Takes the seeds from such a file.
    pub seeds: fn(&[u8]) -> Vec<Vec<u8>>,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "frames", run: esatto_ipc::frame::fuzz_decode, is_seed: is_stream, seeds: whole },
    Target { name: "host", run: esatto_ipc::host::fuzz_host, is_seed: |path| path.ends_with(".c2s.bin"), seeds: whole },
    Target { name: "fields", run: fields, is_seed: |path| path.ends_with(".pftrace"), seeds: whole },
    Target {
        name: "config",
        run: owned::<TraceConfig>,
        is_seed: |path| path.ends_with("consumer.c2s.bin"),
        seeds: |stream| calls(stream, 1).iter().flat_map(|args| nested(args)).collect(),
    },
    Target {
        name: "descriptor",
        run: owned::<DataSourceDescriptor>,
        is_seed: |path| path.ends_with("producer.c2s.bin"),
        seeds: |stream| calls(stream, 2).iter().flat_map(|args| nested(args)).collect(),
    },
    Target {
        name: "commit",
        run: owned::<CommitDataRequest>,
        is_seed: |path| path.ends_with("producer.c2s.bin"),
        seeds: |stream| calls(stream, 4),
    },
    Target {
        name: "text_config",
        run: text_config,
        is_seed: |path| path.ends_with(".pbtx") || path.ends_with(".cfg"),
        seeds: whole,
    },
    Target { name: "shared_memory", run: shared_memory, is_seed: |path| path.contains(".smb"), seeds: whole },
];

fn whole(file: &[u8]) -> Vec<Vec<u8>> {
    vec![file.to_vec()]
}

/// The arguments of all calls of a method in a captured stream of frames.
fn calls(mut stream: &[u8], method: u64) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    while let Some((header, rest)) = stream.split_first_chunk::<4>() {
        let Some((frame, rest)) = rest.split_at_checked(u32::from_le_bytes(*header) as usize) else { break };
        stream = rest;
        if let Some(invoke) = wire::last(frame, 5).filter(|invoke| wire::int(invoke, 2) == method) {
            out.extend(wire::last(invoke, 3).map(<[u8]>::to_vec));
        }
    }
    out
}

/// The message in field 1.
fn nested(args: &[u8]) -> Option<Vec<u8>> {
    wire::last(args, 1).map(<[u8]>::to_vec)
}

fn is_stream(path: &str) -> bool {
    path.ends_with(".c2s.bin") || path.ends_with(".s2c.bin")
}

/// Fields and, as long as they are some, the fields of their values.
fn fields(bytes: &[u8]) {
    fn walk(bytes: &[u8], depth: u32) -> usize {
        let mut fields = Fields::new(bytes);
        let mut count = 0;
        for field in fields.by_ref() {
            count += 1;
            let _ = (field.as_u64(), field.as_i64(), field.as_sint64(), field.as_bool(), field.as_f64());
            if let Value::Bytes(value) = field.value {
                if depth < 20 {
                    count += walk(value, depth + 1);
                }
            }
        }
        assert_eq!(fields.rest().len(), bytes.len() - fields.offset());
        assert_eq!(Fields::new(bytes).check().is_err(), fields.is_malformed());
        count
    }
    walk(bytes, 0);
}

/// A decoded message equals the decoding of its own encoding.
fn owned<M: Owned>(bytes: &[u8]) {
    if let Ok(message) = M::decode(bytes) {
        let encoded = message.encode();
        // A NaN in a float field is not equal to itself: compare encodings.
        let again = M::decode(&encoded).expect("what was encoded decodes");
        assert_eq!(again.encode(), encoded);
    }
}

fn text_config(bytes: &[u8]) {
    static MESSAGE: LazyLock<MessageDescriptor> = LazyLock::new(|| {
        let pool = DescriptorPool::decode(esatto_schema::FILE_DESCRIPTOR_SET).expect("our own descriptors");
        pool.get_message_by_name("perfetto.protos.TraceConfig").expect("it has TraceConfig")
    });
    esatto_text_format::fuzz_parse(&MESSAGE, bytes);
}

/// Memory of a producer: every chunk is taken and read, then everything is scraped.
fn shared_memory(bytes: &[u8]) {
    let mut memory = bytes.to_vec();
    memory.resize(bytes.len().next_multiple_of(4096).clamp(4096, 16 * 4096), 0);
    for page_size in [4096, 8192] {
        let Ok(page_size) = PageSize::new(page_size) else { continue };
        let Ok(region) = ServiceRegion::new(Arc::new(PrivateRegion::from_bytes(&memory)), page_size) else { continue };
        let mut scratch = Vec::new();
        region.scrape(&mut scratch, |info| info.page % 2 == 0, |info, payload| read(payload, info.count));
        let mut payload = Vec::new();
        for page in 0..region.pages() + 2 {
            for chunk in 0..16 {
                if let Ok(info) = region.take_chunk(page, chunk, &mut payload) {
                    read(&payload, info.count);
                    assert!(region.take_chunk(page, chunk, &mut payload).is_err(), "a chunk was taken twice");
                }
            }
        }
    }
}

fn read(payload: &[u8], count: u16) {
    let mut fragments = Fragments::new(payload, count);
    let mut bytes = 0;
    for fragment in fragments.by_ref() {
        if let Fragment::Data(data) = fragment {
            bytes += data.len();
        }
    }
    assert!(bytes <= payload.len() && fragments.offset() <= payload.len());
}
