//! Traces of the mappings of fake and real processes.

use std::collections::BTreeSet;

use esatto_schema::process_smaps_config::Scope as ScopeConfig;
use esatto_schema::{PackedSmapsReader, SmapsConfig, TracePacketReader};

use super::*;
use crate::process_stats::fake_proc::FakeProc;
use crate::test_writer::TestWriter;

const SMAPS: &str = "\
5560-5570 r--p 00000000 fe:00 1234                       /usr/bin/one
Size:                 10 kB
Rss:                   8 kB
Pss:                   4 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd mr mw me sd
7f00-7f10 rw-p 00000000 00:00 0 
Size:                 20 kB
Rss:                   2 kB
Anonymous:             2 kB
Swap:                  1 kB
7f20-7f30 r-xp 00001000 fe:00 1234                       /usr/bin/one
Size:                 30 kB
Rss:                  12 kB
Anonymous:             3 kB
Swap:                  0 kB
7f30-7f40 rw-p 00000000 00:01 7                          /memfd:a: b (deleted)
Size:                  5 kB
";

fn config(cmdlines: &[&str]) -> ProcessSmapsConfig {
    let target_cmdline = cmdlines.iter().map(|&text| text.into()).collect();
    let scope = ScopeConfig { target_cmdline, ..Default::default() };
    ProcessSmapsConfig { scope: Some(scope), ..Default::default() }
}

/// Returns the packets after ticks at these milliseconds.
fn record(path: &Path, config: &ProcessSmapsConfig, ticks_ms: &[u64]) -> Vec<Vec<u8>> {
    let mut source = ProcessSmaps::new(path, config).expect("a config");
    let mut memory = TestWriter::new();
    let mut writer = memory.writer();
    source.start(Duration::ZERO, &mut writer);
    source.flush(&mut writer);
    for &ms in ticks_ms {
        source.tick(Duration::from_millis(ms), &mut writer);
        source.flush(&mut writer);
    }
    source.stop(&mut writer);
    drop(writer);
    memory.packets()
}

fn packed(packet: &[u8]) -> PackedSmapsReader<'_> {
    let smaps = TracePacketReader::new(packet).smaps_packet().expect("mappings");
    assert_eq!(smaps.recording_type(), Some(RecordingType::RECORDING_TYPE_STANDALONE));
    smaps.packed_entries().expect("mappings")
}

fn names(packed: &PackedSmapsReader<'_>) -> Vec<String> {
    packed.string_table().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

#[test]
fn mappings_are_aggregated_by_name() {
    let proc = FakeProc::new();
    proc.process(10, "one");
    proc.file("10/smaps", SMAPS);
    let packets = record(&proc.path, &config(&["one"]), &[]);
    let packed = packed(&packets[0]);
    assert_eq!(names(&packed), ["", "/usr/bin/one", "/memfd:a: b (deleted)"]);
    assert_eq!(packed.aggregate_count().collect::<Vec<_>>(), [1, 2, 1]);
    assert_eq!(packed.size_kb().collect::<Vec<_>>(), [20, 40, 5]);
    assert_eq!(packed.rss_kb().collect::<Vec<_>>(), [2, 20, 0]);
    assert_eq!(packed.anonymous_kb().collect::<Vec<_>>(), [2, 3, 0]);
    assert_eq!(packed.swap_kb().collect::<Vec<_>>(), [1, 0, 0]);
    assert_eq!((packed.name_id().count(), packed.pss_kb().count()), (0, 0));
}

#[test]
fn mappings_one_by_one_have_the_fields_that_are_wanted() {
    let proc = FakeProc::new();
    proc.process(10, "one");
    proc.file("10/smaps", SMAPS);
    let vma_fields = vec![esatto_schema::smaps_config::VmaField::VMA_FIELD_PSS];
    let smaps = SmapsConfig { unaggregated: Some(true), vma_fields, ..Default::default() };
    let packets = record(&proc.path, &ProcessSmapsConfig { smaps_config: Some(smaps), ..config(&["/bin/*"]) }, &[]);
    let packed = packed(&packets[0]);
    assert_eq!(packed.name_id().collect::<Vec<_>>(), [1, 0, 1, 2]);
    assert_eq!(packed.pss_kb().collect::<Vec<_>>(), [4, 0, 0, 0]);
    assert_eq!((packed.aggregate_count().count(), packed.size_kb().count()), (0, 0));
}

#[test]
fn a_bounded_number_of_processes_is_read_in_turns() {
    let proc = FakeProc::new();
    for pid in 10..15 {
        proc.process(pid, "one");
        proc.file(&format!("{pid}/smaps"), SMAPS);
    }
    proc.process(20, "other");
    proc.file("20/smaps", SMAPS);
    let config = ProcessSmapsConfig { read_period_ms: Some(1), max_processes_per_period: Some(2), ..config(&["one"]) };
    let packets = record(&proc.path, &config, &[500, 1000, 2000]);
    let pids = packets.iter().map(|packet| TracePacketReader::new(packet).smaps_packet()?.pid());
    let pids: Vec<u32> = pids.flatten().collect();
    assert_eq!(pids.len(), 6, "two at the start, at 1 s and at 2 s");
    let first_round: BTreeSet<u32> = pids[..5].iter().copied().collect();
    assert!(first_round.into_iter().eq(10..15), "{pids:?}");
}

#[test]
fn processes_without_mappings_have_no_packet() {
    let proc = FakeProc::new();
    proc.process(10, "one");
    proc.process(11, "one");
    proc.file("11/smaps", "");
    assert_eq!(record(&proc.path, &config(&["*"]), &[]).len(), 0);
}

#[test]
fn long_lines_and_odd_bytes_do_no_harm() {
    let proc = FakeProc::new();
    proc.process(10, "one");
    let mut smaps = SMAPS.as_bytes().to_vec();
    smaps.extend_from_slice(b"7f-8f rw-p 0 0 0 /");
    smaps.extend_from_slice(&[b'x'; 100_000]);
    smaps.extend_from_slice(b"\n:\n : \n\xff\nSize: 99999999999999999999 kB\nSize: 1 kB\n7f-8f rw-p 0 0 0 /last");
    proc.file("10/smaps", smaps);
    let packets = record(&proc.path, &config(&["one"]), &[]);
    assert_eq!(names(&packed(&packets[0]))[1], "/usr/bin/one");
}

#[test]
fn a_real_process_has_mappings() {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a program");
    let child_pid = child.id();
    // It is `sleep` only after its exec.
    let found = (0..1000).find_map(|_| {
        let packets = record(Path::new("/proc"), &config(&["sleep"]), &[]);
        packets.into_iter().find(|packet| {
            TracePacketReader::new(packet).smaps_packet().and_then(|smaps| smaps.pid()) == Some(child_pid)
        })
    });
    child.kill().expect("its end");
    child.wait().expect("its end");
    let packet = found.expect("the process");
    let packed = packed(&packet);
    assert!(names(&packed).iter().any(|name| name == "[stack]"));
    assert_eq!(packed.size_kb().count(), names(&packed).len());
    assert!(packed.rss_kb().sum::<u64>() > 0);
}
