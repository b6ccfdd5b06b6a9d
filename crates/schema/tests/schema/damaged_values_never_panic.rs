//! Owned types decode any bytes of a peer or refuse them. A second round of decoding and encoding
//! changes nothing.

use esatto_protozero::Owned;
use esatto_schema::{CommitDataRequest, DataSourceDescriptor, EnableTracingRequest, IPCFrame, TraceConfig};

/// Number of damaged copies to try.
const ROUNDS: u64 = 20_000;

fn take<T: Owned>(bytes: &[u8]) -> bool {
    let Ok(value) = T::decode(bytes) else { return false };
    let encoded = value.encode();
    let again = T::decode(&encoded).expect("what we encode, we decode");
    assert_eq!(again.encode(), encoded);
    true
}

#[test]
fn a_second_round_changes_nothing() {
    let config = include_bytes!("../data/official-v56-process-and-sys-stats.pftrace");
    let config = esatto_schema::TraceReader::new(config).packet().find_map(|packet| packet.trace_config()).unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut decoded = 0;
    for _ in 0..ROUNDS {
        let mut bytes = config.as_bytes().to_vec();
        for _ in 0..=random(4) {
            let at = random(bytes.len());
            match random(3) {
                0 => bytes[at] = random(256) as u8,
                1 => bytes[at] ^= 1 << random(8),
                _ => bytes.truncate(at.max(1)),
            }
        }
        decoded += usize::from(take::<TraceConfig>(&bytes));
        take::<EnableTracingRequest>(&bytes);
        take::<IPCFrame>(&bytes);
        take::<DataSourceDescriptor>(&bytes);
        take::<CommitDataRequest>(&bytes);
    }
    assert!(decoded > 100, "some of it is still a configuration: {decoded}");
}
