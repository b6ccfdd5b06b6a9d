//! Other formats of traces.

use std::io::Read as _;

use esatto_convert::{
    ChromeJson, StackKind, Stacks, write_chrome_json, write_folded, write_pprof, write_speedscope,
};
use esatto_trace::tables::Tables;
use esatto_trace::{Engine, packets};

/// A file of Chrome JSON: it becomes packets that can be read, and these become JSON that can be
/// read.
pub fn chrome_json(bytes: &[u8]) {
    let Ok(mut json) = ChromeJson::read(bytes, 0) else { return };
    let mut trace = Vec::new();
    json.read_to_end(&mut trace).expect("the records are in memory");
    if trace.is_empty() {
        // No event can be converted, and an empty file is no trace.
        return;
    }
    for packet in packets(&trace) {
        packet.expect("a packet");
    }
    let engine = Engine::read(&trace[..]);
    assert!(engine.errors.is_empty(), "{:?}", engine.errors);
    convert(&engine.tables);
}

/// Writes tables in every format.
pub(crate) fn convert(tables: &Tables) {
    let mut json = Vec::new();
    write_chrome_json(tables, &mut json).expect("a vector takes all");
    serde_json::from_slice::<serde_json::Value>(&json).expect("JSON");
    if let Ok(mut again) = ChromeJson::read(&json[..], 1) {
        let summary = again.summary();
        assert!(summary.error.is_none() && !summary.is_torn && summary.malformed == 0, "{summary:?}");
        std::io::copy(&mut again, &mut std::io::sink()).expect("the records are in memory");
    }
    let mut file = Vec::new();
    write_speedscope(tables, &StackKind::ALL, "fuzz", &mut file).expect("a vector takes all");
    serde_json::from_slice::<serde_json::Value>(&file).expect("JSON");
    for kind in StackKind::ALL {
        let stacks = Stacks::of(kind, tables);
        write_folded(&stacks, &mut Vec::new()).expect("a vector takes all");
        write_pprof(&stacks, 0, &mut Vec::new()).expect("a vector takes all");
    }
}
