//! Comparison with bytes that Perfetto wrote: `tests/captures` (see the README there).

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use esatto_protozero::{Fields, HeapBuffer};
use esatto_shm::{
    CommitRequest, ExhaustedPolicy, Fragment, Fragments, Memory, Options, PrivateRegion, ServiceRegion, TraceWriter,
    abi::{ChunkFlags, DROP_MARKER_BYTES, PageLayout, PageSize},
};

use crate::rig::{Rig, Taken, nested_packet, test_packet};

fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/captures")
}

/// Returns the snapshots of the memory of one run, in order.
fn snapshots(run: &str) -> Vec<Vec<u8>> {
    (0..).map_while(|n| fs::read(captures().join(run).join(format!("producer.smb{n}.bin"))).ok()).collect()
}

fn page_size(run: &str) -> PageSize {
    let kib = if matches!(run, "probes-session" | "writer-saturate" | "writer-big") { 32 } else { 4 };
    PageSize::from_kib(kib).unwrap()
}

/// Returns every chunk that is complete in some snapshot of a run, by chunk id.
fn complete_chunks(run: &str) -> BTreeMap<u32, Taken> {
    let mut chunks = BTreeMap::new();
    for snapshot in snapshots(run) {
        let region: Arc<dyn Memory> = Arc::new(PrivateRegion::from_bytes(&snapshot));
        let service = ServiceRegion::new(region, page_size(run)).unwrap();
        for page in 0..service.pages() {
            for chunk in 0..14 {
                let mut payload = Vec::new();
                if let Ok(info) = service.take_chunk(page, chunk, &mut payload) {
                    chunks.entry(info.chunk_id).or_insert(Taken { info, payload });
                }
            }
        }
    }
    chunks
}

/// Returns the payload up to the end of the last fragment; for a dropped fragment, up to its
/// marker.
fn significant(taken: &Taken) -> &[u8] {
    let mut fragments = Fragments::new(&taken.payload, taken.info.count);
    while let Some(fragment) = fragments.next() {
        match fragment {
            Fragment::Data(_) => {}
            Fragment::Dropped => return &taken.payload[..fragments.offset() + 4],
            Fragment::Invalid => panic!("fragment at {}", fragments.offset()),
        }
    }
    &taken.payload[..fragments.offset()]
}

/// Id of the method in all recorded connections.
const COMMIT_DATA: u64 = 4;

/// Returns the arguments of all CommitData calls of the producer, in order.
fn commit_data(run: &str) -> Vec<Vec<u8>> {
    let bytes = fs::read(captures().join(run).join("producer.c2s.bin")).unwrap();
    let mut rest = &bytes[..];
    let mut calls = Vec::new();
    while let Some((len, after)) = rest.split_first_chunk::<4>() {
        let (frame, after) = after.split_at(u32::from_le_bytes(*len) as usize);
        rest = after;
        for invoke in Fields::new(frame).filter(|f| f.id == 5) {
            let field = |id| Fields::new(invoke.as_bytes()).find(|f| f.id == id);
            let args = field(3).map_or(&[][..], |f| f.as_bytes()).to_vec();
            if field(2).unwrap().as_u64() == COMMIT_DATA {
                calls.push(args);
            }
        }
    }
    calls
}

fn encoded(request: &CommitRequest) -> Vec<u8> {
    let mut buffer = HeapBuffer::new();
    request.write_to(&mut buffer.message());
    buffer.to_vec()
}

/// Checks that fragments are equal, byte for byte, in chunks with equal ids, flags and counts.
#[track_caller]
fn assert_same_chunks(run: &str, ours: &[Taken]) {
    let theirs = complete_chunks(run);
    assert!(!theirs.is_empty());
    for (chunk_id, theirs) in &theirs {
        let ours = ours.iter().find(|t| t.info.chunk_id == *chunk_id).expect("as many chunks");
        assert_eq!((ours.info.count, ours.info.flags), (theirs.info.count, theirs.info.flags));
        assert_eq!(ours.info.writer_id, theirs.info.writer_id);
        assert!(significant(ours) == significant(theirs), "{run} chunk {chunk_id}");
    }
}

fn event(writer: &mut TraceWriter, timestamp: u64, text: &str) {
    test_packet(writer, timestamp, text);
}

#[test]
fn every_snapshot_parses() {
    let mut found = 0;
    for entry in fs::read_dir(captures()).unwrap() {
        let run = entry.unwrap().file_name().into_string().unwrap();
        let snapshots = snapshots(&run);
        let mut chunks = 0;
        for snapshot in &snapshots {
            found += 1;
            let region: Arc<dyn Memory> = Arc::new(PrivateRegion::from_bytes(snapshot));
            let service = ServiceRegion::new(region, page_size(&run)).unwrap();
            service.scrape(
                &mut Vec::new(),
                |_| true,
                |info, payload| {
                    chunks += 1;
                    let count = info.finished_count();
                    let fragments: Vec<_> = Fragments::new(payload, count).collect();
                    assert!(!fragments.contains(&Fragment::Invalid), "{run} {info:?}");
                    let dropped = fragments.iter().position(|f| *f == Fragment::Dropped);
                    assert_eq!(fragments.len(), dropped.map_or_else(|| usize::from(count), |d| d + 1));
                    assert!(info.flags.0 < 8 && (1..3).contains(&info.writer_id), "{run} {info:?}");
                    // Whole packets are whole messages.
                    for fragment in &fragments[1..fragments.len().max(2) - 1] {
                        let Fragment::Data(data) = fragment else { continue };
                        let mut fields = Fields::new(data);
                        assert!(fields.by_ref().count() > 0 && !fields.is_malformed(), "{run} {info:?}");
                    }
                },
            );
        }
        assert!(chunks > 0 || snapshots.is_empty(), "{run}");
    }
    assert!(found >= 49, "{found} snapshots");
}

#[test]
fn fragments_are_the_golden_values() {
    let sizes = |run: &str, chunk_id| complete_chunks(run)[&chunk_id].sizes();
    let flags = |run: &str, chunk_id| complete_chunks(run)[&chunk_id].info.flags.0;
    assert_eq!(sizes("writer-basic", 0), [13, 10, 211, 0]);
    assert_eq!([0, 1, 2].map(|i| flags("writer-frag", i)), [6, 3, 1]);
    assert_eq!(sizes("writer-frag", 0), [15, 4060]);
    assert_eq!(sizes("writer-frag", 1), [4076]);
    assert_eq!(sizes("writer-frag", 2), [1057, 11, 0]);
    assert_eq!(sizes("old-client-frag", 0), [15, 4057]);
    assert_eq!(sizes("old-client-frag", 1), [4076]);
    assert_eq!(sizes("old-client-frag", 2), [1060, 14]);

    let dropped = &complete_chunks("writer-drop")[&1];
    assert_eq!((dropped.info.count, dropped.info.flags.0), (9, 1));
    assert_eq!(dropped.fragments().last(), Some(&Fragment::Dropped));
    let between = &complete_chunks("writer-dropbtw")[&1];
    assert_eq!((between.info.count, between.info.flags), (9, ChunkFlags::NONE));
    assert_eq!(between.sizes().last(), Some(&0));
    let sacrificed = &complete_chunks("old-client-dropbtw")[&1];
    assert_eq!(sacrificed.info.count, 8);
    assert_eq!(sacrificed.fragments().last(), Some(&Fragment::Dropped));
    let middle = &complete_chunks("writer-dropmid")[&1];
    assert_eq!((middle.info.count, middle.info.flags.0), (1, 1));
    assert_eq!(middle.payload[..4], DROP_MARKER_BYTES);
    for run in ["writer-drop", "writer-dropmid"] {
        let next = &complete_chunks(run)[&2];
        let Fragment::Data(data) = next.fragments()[0] else { panic!() };
        assert_eq!(data[..4], [0xd0, 0x02, 0x81, 0x02]);
    }
}

#[test]
fn small_packets_are_written_byte_for_byte() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    event(&mut writer, 1, "one");
    event(&mut writer, 2, "two");
    event(&mut writer, 3, &"L".repeat(200));
    writer.flush();
    let commit = rig.commit();
    assert_eq!(encoded(&commit), commit_data("writer-basic")[0]);
    assert_same_chunks("writer-basic", &[rig.take(0, 0)]);
}

fn fragmented(run: &str, layout: PageLayout) {
    let mut options = Options::default();
    options.layout = layout;
    let rig = Rig::with_options(16384, options);
    let mut writer = rig.writer();
    event(&mut writer, 1, "first");
    let strings = if run == "writer-frag" { 90 } else { 30 };
    nested_packet(&mut writer, 2, strings);
    event(&mut writer, 3, "last");
    writer.flush();
    let commit = rig.commit();
    assert_eq!(encoded(&commit), commit_data(run)[0], "{run}");
    let taken: Vec<_> = commit.moves.iter().map(|m| rig.take(m.page, m.chunk)).collect();
    assert_same_chunks(run, &taken);
}

#[test]
fn fragmented_packets_are_written_byte_for_byte() {
    fragmented("writer-frag", PageLayout::Div1);
}

#[test]
fn fragmented_packets_in_small_chunks_are_written_byte_for_byte() {
    fragmented("writer-div4", PageLayout::Div4);
    fragmented("writer-div14", PageLayout::Div14);
}

#[test]
fn packets_patched_in_place_are_written_byte_for_byte() {
    let mut options = Options::default();
    options.direct_patching = true;
    options.batch_delay = core::time::Duration::from_millis(300);
    let rig = Rig::with_options(16384, options);
    let mut writer = rig.writer();
    event(&mut writer, 1, "first");
    nested_packet(&mut writer, 2, 90);
    event(&mut writer, 3, "last");
    writer.flush();
    let commit = rig.commit();
    assert_eq!(encoded(&commit), commit_data("writer-directpatch")[0]);
    let taken: Vec<_> = commit.moves.iter().map(|m| rig.take(m.page, m.chunk)).collect();
    assert_same_chunks("writer-directpatch", &taken);
}

#[test]
fn many_packets_are_written_byte_for_byte() {
    for run in ["writer-many", "writer-saturate"] {
        let rig = Rig::with_page_size(8 << 20, page_size(run), Options::default());
        let mut writer = rig.writer();
        for i in 0..2500 {
            event(&mut writer, i, "");
        }
        writer.flush();
        let commit = rig.commit();
        let taken: Vec<_> = commit.moves.iter().map(|m| rig.take(m.page, m.chunk)).collect();
        assert_same_chunks(run, &taken);
    }
}

/// Writes packets of 511 bytes, each filled with its own letter.
fn load(writer: &mut TraceWriter, range: std::ops::RangeInclusive<u64>) {
    for i in range {
        let letter = char::from(b'a' + ((i - 1) % 26) as u8);
        event(writer, i, &letter.to_string().repeat(500));
    }
}

#[test]
fn a_drop_inside_a_packet_is_written_byte_for_byte() {
    let rig = Rig::new(8192);
    let mut writer = rig.arbiter.create_writer(1, ExhaustedPolicy::Drop);
    load(&mut writer, 1..=40);
    writer.flush();
    let commit = rig.commit();
    assert_eq!(encoded(&commit), commit_data("writer-drop")[0]);
    let mut taken: Vec<_> = commit.moves.iter().map(|m| rig.take(m.page, m.chunk)).collect();
    event(&mut writer, 100, "after");
    event(&mut writer, 101, "after");
    event(&mut writer, 102, "after");
    for i in 110..=112 {
        event(&mut writer, i, &"z".repeat(700));
    }
    writer.flush();
    taken.extend(rig.drain());
    event(&mut writer, 200, "later");
    writer.flush();
    taken.extend(rig.drain());
    assert_same_chunks("writer-drop", &taken);
}

#[test]
fn a_drop_inside_a_fragmented_packet_is_written_byte_for_byte() {
    let rig = Rig::new(8192);
    let mut writer = rig.arbiter.create_writer(1, ExhaustedPolicy::Drop);
    load(&mut writer, 1..=6);
    nested_packet(&mut writer, 50, 90);
    writer.flush();
    let commit = rig.commit();
    assert_eq!(encoded(&commit), commit_data("writer-dropmid")[0]);
    let mut taken: Vec<_> = commit.moves.iter().map(|m| rig.take(m.page, m.chunk)).collect();
    event(&mut writer, 200, "later");
    event(&mut writer, 201, "later2");
    writer.flush();
    taken.extend(rig.drain());
    assert_same_chunks("writer-dropmid", &taken);
}

#[test]
fn a_drop_between_packets_is_written_byte_for_byte() {
    let rig = Rig::new(8192);
    let mut writer = rig.arbiter.create_writer(1, ExhaustedPolicy::Drop);
    for i in 1..=7 {
        event(&mut writer, i, &"a".repeat(500));
    }
    event(&mut writer, 8, &"b".repeat(452));
    for i in 10..=16 {
        event(&mut writer, i, &"c".repeat(500));
    }
    event(&mut writer, 20, &"d".repeat(455));
    event(&mut writer, 30, "lost");
    let commit = rig.commit();
    assert_eq!(encoded(&commit), commit_data("writer-dropbtw")[0]);
    let mut taken: Vec<_> = commit.moves.iter().map(|m| rig.take(m.page, m.chunk)).collect();
    // Upstream would lose some more packets now. This writer does not.
    event(&mut writer, 200, "later");
    writer.flush();
    taken.extend(rig.drain());
    assert_same_chunks("writer-dropbtw", &taken);
}

#[test]
fn a_chunk_being_written_looks_like_the_original() {
    // The scraper sees the fragments that the writer announced: compare with the first snapshot of
    // `writer-scrape`.
    let theirs = &snapshots("writer-scrape")[0];
    let region: Arc<dyn Memory> = Arc::new(PrivateRegion::from_bytes(theirs));
    let service = ServiceRegion::new(region, PageSize::DEFAULT).unwrap();
    let mut found = Vec::new();
    service.scrape(&mut Vec::new(), |_| true, |info, payload| found.push((*info, payload.to_vec())));
    let [(info, payload)] = &found[..] else { panic!("{found:?}") };
    assert!(!info.complete);
    let packets: Vec<_> = Fragments::new(payload, info.finished_count()).collect();

    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    for packet in &packets {
        let Fragment::Data(data) = packet else { panic!("{packet:?}") };
        let mut fields = Fields::new(data).filter(|f| f.id != 87);
        let timestamp = fields.next().unwrap().as_u64();
        let text = Fields::new(fields.next().unwrap().as_bytes()).next().unwrap();
        event(&mut writer, timestamp, core::str::from_utf8(text.as_bytes()).unwrap());
    }
    let mut ours = Vec::new();
    rig.service.scrape(&mut Vec::new(), |_| true, |info, payload| ours.push((*info, payload.to_vec())));
    assert_eq!(ours, found);
}
