use std::fs;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use esatto_protozero::Owned as _;
use esatto_schema::{SystemdJournaldConfig, SystemdJournaldEventReader, TracePacketReader};

use super::bytes_at::BytesAt;
use super::journal_file::{JournalFile, ReadError};
use super::*;
use crate::test_writer::TestWriter;

/// Boot and machine of the samples.
const ID: &str = "0123456789abcdef0123456789abcdef";
const ENTRIES: u64 = 47;
const NONE: [u32; 0] = [];
/// Offset of the number of entries in the header of a file.
const ENTRIES_AT: u64 = 152;
const STATE_AT: u64 = 16;
const FILE_ID_AT: u64 = 24;

fn sample(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journals").join(name);
    let packed = fs::read(path).expect("a sample");
    let mut bytes = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(packed.as_slice()).expect("zstd").read_to_end(&mut bytes).expect("zstd");
    bytes
}

fn journal_sample(name: &str) -> Vec<u8> {
    sample(&format!("{name}.journal.zst"))
}

/// Returns what `journalctl` read from the samples: fields and values of each entry.
fn expected() -> Vec<Vec<(String, Vec<u8>)>> {
    let all = sample("entries.zst");
    let split = |field: &[u8]| {
        let end = field.iter().position(|&byte| byte == b'=').expect("a name");
        (String::from_utf8(field[..end].to_vec()).expect("text"), field[end + 1..].to_vec())
    };
    let entries = all.split(|&byte| byte == 0x1e).filter(|entry| !entry.is_empty());
    entries
        .map(|entry| entry.split(|&byte| byte == 0x1f).filter(|field| !field.is_empty()).map(split).collect())
        .collect()
}

fn config(min_prio: Option<u32>, identifiers: &[&str], units: &[&str]) -> Vec<u8> {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.into()).collect();
    let (filter_identifiers, filter_units) = (texts(identifiers), texts(units));
    SystemdJournaldConfig { min_prio, filter_identifiers, filter_units, ..SystemdJournaldConfig::default() }.encode()
}

fn filter(config: &[u8]) -> Filter {
    Filter::new(&SystemdJournaldConfigReader::new(config))
}

/// Reads a whole file. Returns the numbers of the entries that match, with their texts.
fn read_all(file: impl BytesAt, filter: &Filter) -> Vec<(u64, Vec<u8>)> {
    let mut file = JournalFile::open(file).expect("a journal");
    let mut values = Values::default();
    let mut read = Vec::new();
    while let Some(entry) = file.next().expect("whole") {
        if file.read_values(filter, &mut values) {
            read.push((entry.seqnum, values.text(Field::Message).unwrap_or_default().to_vec()));
        }
    }
    read
}

/// A folder with a journal, which is removed in the end.
struct Machine {
    folder: PathBuf,
}

impl Machine {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("esatto-journal-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("run").join(ID)).expect("a folder");
        fs::write(folder.join("machine-id"), format!("{ID}\n")).expect("written");
        fs::write(folder.join("boot-id"), "01234567-89ab-cdef-0123-456789abcdef\n").expect("written");
        Self { folder }
    }

    fn journal(&self) -> PathBuf {
        self.folder.join("run").join(ID)
    }

    /// Writes a file that has the first `entries` of a sample.
    fn write(&self, name: &str, sample: &[u8], entries: u64) -> fs::File {
        let path = self.journal().join(name);
        fs::write(&path, sample).expect("written");
        let file = fs::File::options().write(true).open(path).expect("a file");
        file.write_all_at(&entries.to_le_bytes(), ENTRIES_AT).expect("written");
        file
    }

    fn source(&self) -> Result<Journald, SetupError> {
        let places = Places {
            roots: vec![self.folder.join("run"), self.folder.join("var")],
            machine_id: self.folder.join("machine-id"),
            boot_id: self.folder.join("boot-id"),
        };
        Journald::new(&SystemdJournaldConfigReader::new(&[]), &places)
    }

    /// Starts at a time before all entries of the samples.
    fn start(&self) -> Journald {
        let mut source = self.source().expect("a journal");
        source.journal.start(1, 1);
        source.is_started = true;
        source
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Lets a source read as often as it wants to, and returns the process ids of the entries.
fn tick(source: &mut Journald) -> Vec<u32> {
    let mut test = TestWriter::new();
    let mut writer = test.writer();
    source.tick(Duration::ZERO, &mut writer);
    while source.journal.has_more() {
        source.tick(Duration::ZERO, &mut writer);
    }
    drop(writer);
    let packets = test.packets();
    packets.iter().map(|packet| event(packet).pid().unwrap_or(0)).collect()
}

fn event(packet: &[u8]) -> SystemdJournaldEventReader<'_> {
    TracePacketReader::new(packet).journald_event().expect("an entry")
}

#[test]
fn files_of_each_compression_and_layout_read_as_by_journalctl() {
    let expected = expected();
    let everything = filter(&[]);
    for compression in ["none", "xz", "lz4", "zstd"] {
        for layout in ["regular", "compact"] {
            let name = format!("{compression}-{layout}");
            let bytes = journal_sample(&name);
            let mut file = JournalFile::open(bytes.as_slice()).expect("a journal");
            let mut values = Values::default();
            let mut entries = expected.iter();
            while let Some(entry) = file.next().expect("whole") {
                let expected = entries.next().expect("no more than journalctl");
                let find = |name: &str| expected.iter().find(|(field, _)| field == name);
                let text = |name: &str| find(name).map(|(_, value)| value.clone()).unwrap_or_default();
                let number = |name: &str| String::from_utf8(text(name)).ok().and_then(|text| text.parse().ok());
                assert_eq!(Some(entry.seqnum), number("__SEQNUM"));
                assert_eq!(Some(entry.realtime_us), number("__REALTIME_TIMESTAMP"));
                assert_eq!(Some(entry.monotonic_us), number("__MONOTONIC_TIMESTAMP"));
                let matches = file.read_values(&everything, &mut values);
                assert_eq!(matches, find("PRIORITY").is_some(), "{name}: {}", entry.seqnum);
                for (field, key) in [
                    (Field::Pid, "_PID"),
                    (Field::Tid, "_TID"),
                    (Field::Uid, "_UID"),
                    (Field::Gid, "_GID"),
                    (Field::Priority, "PRIORITY"),
                    (Field::Identifier, "SYSLOG_IDENTIFIER"),
                    (Field::Message, "MESSAGE"),
                    (Field::Comm, "_COMM"),
                    (Field::Exe, "_EXE"),
                    (Field::Unit, "_SYSTEMD_UNIT"),
                    (Field::Hostname, "_HOSTNAME"),
                    (Field::Transport, "_TRANSPORT"),
                ] {
                    let mut expected = text(key);
                    expected.truncate(64 << 10);
                    assert_eq!(values.text(field).unwrap_or_default(), expected, "{name}: {key} of {}", entry.seqnum);
                }
            }
            assert_eq!(entries.next(), None, "{name}: as many as journalctl");
        }
    }
}

#[test]
fn entries_match_the_priority_and_one_text_of_each_list() {
    let bytes = journal_sample("zstd-compact");
    let numbers = |config: &[u8]| -> Vec<u64> {
        read_all(bytes.as_slice(), &filter(config)).into_iter().map(|(number, _)| number).filter(|&n| n <= 40).collect()
    };
    let all = |wanted: &dyn Fn(u64) -> bool| (0..40).filter(|&n| wanted(n)).map(|n| n + 1).collect::<Vec<u64>>();
    assert_eq!(numbers(&config(None, &[], &[])), all(&|_| true));
    assert_eq!(numbers(&config(Some(2), &[], &[])), all(&|n| n % 8 <= 2));
    assert_eq!(numbers(&config(None, &["program4", "program1"], &[])), all(&|n| n % 5 == 1 || n % 5 == 4));
    assert_eq!(
        numbers(&config(Some(5), &["program1"], &["unit2.service"])),
        all(&|n| { n % 8 <= 5 && n % 5 == 1 && n % 3 == 2 })
    );
    assert_eq!(numbers(&config(Some(u32::MAX), &["program"], &[])), [0_u64; 0]);
}

#[test]
fn only_entries_after_the_start_are_written() {
    let machine = Machine::new("follow");
    let sample = journal_sample("zstd-compact");
    let file = machine.write("system.journal", &sample, 10);
    let mut source = machine.start();
    assert_eq!(tick(&mut source), NONE);
    for end in [11, 30, 40] {
        let start = 1000 + tick(&mut source).len();
        assert_eq!(start, 1000, "nothing was written");
        let before = source.total as u32;
        file.write_all_at(&u64::from(end).to_le_bytes(), ENTRIES_AT).expect("written");
        assert_eq!(tick(&mut source), (1010 + before..1000 + end).collect::<Vec<u32>>());
    }
}

#[test]
fn packets_have_the_time_of_the_entry_and_a_flush_adds_the_totals() {
    let machine = Machine::new("packets");
    let file = machine.write("system.journal", &journal_sample("lz4-regular"), 3);
    let mut source = machine.start();
    file.write_all_at(&4_u64.to_le_bytes(), ENTRIES_AT).expect("written");
    let mut test = TestWriter::new();
    let mut writer = test.writer();
    source.flush(&mut writer);
    drop(writer);
    let packets = test.packets();
    let [entry, totals] = packets.as_slice() else { panic!("{} packets", packets.len()) };
    let packet = TracePacketReader::new(entry);
    assert_eq!((packet.timestamp(), packet.timestamp_clock_id()), (Some(5_003_000_000), Some(3)));
    let event_of = event(entry);
    assert_eq!(
        (event_of.pid(), event_of.tid(), event_of.uid(), event_of.gid()),
        (Some(1003), Some(2003), Some(33), Some(34))
    );
    assert_eq!(
        (event_of.prio(), event_of.tag(), event_of.message()),
        (Some(3), Some(&b"program3"[..]), Some(&b"message 3"[..]))
    );
    assert_eq!((event_of.comm(), event_of.exe()), (Some(&b"worker"[..]), Some(&b"/usr/bin/program3"[..])));
    assert_eq!((event_of.systemd_unit(), event_of.hostname()), (Some(&b"unit0.service"[..]), Some(&b"sample"[..])));
    assert_eq!((event_of.transport(), event_of.num_total()), (Some(&b"journal"[..]), None));
    assert_eq!(TracePacketReader::new(totals).timestamp_clock_id(), Some(6));
    assert_eq!((event(totals).num_total(), event(totals).num_failed()), (Some(1), Some(0)));
}

#[test]
fn a_rotated_journal_goes_on_in_the_next_file() {
    let machine = Machine::new("rotate");
    let sample = journal_sample("xz-compact");
    let file = machine.write("system.journal", &sample, 10);
    let mut source = machine.start();
    // Two more entries, then journald renames the file, ends it, and begins the next one, here with
    // the same entries: they are copies, except for the later ones.
    file.write_all_at(&12_u64.to_le_bytes(), ENTRIES_AT).expect("written");
    let folder = machine.journal();
    fs::rename(folder.join("system.journal"), folder.join("system@1.journal")).expect("renamed");
    file.write_all_at(&[2], STATE_AT).expect("written");
    let mut next = sample.clone();
    next[FILE_ID_AT as usize] ^= 1;
    machine.write("system.journal", &next, 20);
    let read = tick(&mut source);
    let first: Vec<u32> = read.iter().copied().filter(|pid| *pid >= 1010).collect();
    assert_eq!(first, (1010..1020).collect::<Vec<u32>>(), "each once, in order: {read:?}");
    assert_eq!(source.journal.open_files(), 1, "the archived file is closed");
    assert_eq!(tick(&mut source), NONE);
    fs::remove_file(folder.join("system.journal")).expect("removed");
    fs::remove_file(folder.join("system@1.journal")).expect("removed");
    assert_eq!(tick(&mut source), NONE);
    assert_eq!(source.journal.open_files(), 0);
}

#[test]
fn entries_of_several_files_come_in_the_order_of_their_numbers() {
    let machine = Machine::new("order");
    let sample = journal_sample("none-compact");
    let mut other = sample.clone();
    other[FILE_ID_AT as usize] ^= 1;
    let files = [machine.write("system.journal", &sample, 0), machine.write("user-1000.journal", &other, 0)];
    let mut source = machine.start();
    files.iter().for_each(|file| file.write_all_at(&20_u64.to_le_bytes(), ENTRIES_AT).expect("written"));
    let expected: Vec<u32> = (1000..1020).flat_map(|pid| [pid, pid]).collect();
    assert_eq!(tick(&mut source), expected);
}

#[test]
fn entries_of_another_boot_count_as_failed() {
    let machine = Machine::new("boot");
    fs::write(machine.folder.join("boot-id"), "ffffffff-89ab-cdef-0123-456789abcdef\n").expect("written");
    let file = machine.write("system.journal", &journal_sample("none-regular"), 0);
    let mut source = machine.start();
    file.write_all_at(&5_u64.to_le_bytes(), ENTRIES_AT).expect("written");
    assert_eq!(tick(&mut source), NONE);
    assert_eq!((source.total, source.failed), (0, 5));
    let mut test = TestWriter::new();
    let mut writer = test.writer();
    source.flush(&mut writer);
    source.flush(&mut writer);
    drop(writer);
    let packets = test.packets();
    let told = |packet: &&Vec<u8>| packet.windows(9).any(|part| part == b"could not");
    assert_eq!(packets.iter().filter(told).count(), 1, "the trace says it once");
}

#[test]
fn entries_of_a_container_with_a_boot_id_of_its_own_are_read() {
    let machine = Machine::new("container");
    fs::write(machine.folder.join("boot-id"), "ffffffff-89ab-cdef-0123-456789abcdef\n").expect("written");
    let file = machine.write("system.journal", &journal_sample("none-regular"), 0);
    file.write_all_at(&5_u64.to_le_bytes(), ENTRIES_AT).expect("written");
    let path = fs::File::open(machine.journal().join("system.journal")).expect("a file");
    let first = JournalFile::open(path).expect("a journal").next().expect("whole").expect("an entry");
    file.write_all_at(&0_u64.to_le_bytes(), ENTRIES_AT).expect("written");
    let mut source = machine.source().expect("a journal");
    source.journal.start(first.monotonic_us - 1, first.realtime_us - 1);
    source.is_started = true;
    file.write_all_at(&5_u64.to_le_bytes(), ENTRIES_AT).expect("written");
    assert_eq!(tick(&mut source), [1000, 1001, 1002, 1003, 1004]);
    assert_eq!(source.failed, 0);
}

#[test]
fn a_machine_without_a_journal_is_told_so() {
    let machine = Machine::new("none");
    fs::remove_dir_all(machine.folder.join("run")).expect("removed");
    let error = machine.source().expect_err("no journal").to_string();
    assert!(error.starts_with("there is no journal in "), "{error}");
    // journald may make the folder of the machine later.
    fs::create_dir_all(machine.folder.join("var")).expect("made");
    let mut source = machine.start();
    assert_eq!(tick(&mut source), NONE);
    let folder = machine.folder.join("var").join(ID);
    fs::create_dir_all(&folder).expect("made");
    assert_eq!(tick(&mut source), NONE);
    fs::write(folder.join("system.journal"), journal_sample("none-regular")).expect("written");
    assert_eq!(tick(&mut source).len(), ENTRIES as usize - 1, "all but the one without priority");
}

#[test]
fn a_damaged_file_does_not_keep_others_from_being_read() {
    let machine = Machine::new("damaged");
    let sample = journal_sample("none-regular");
    let mut damaged = sample.clone();
    damaged[FILE_ID_AT as usize] ^= 1;
    // Its list of entries is somewhere else.
    damaged[176..184].copy_from_slice(&240_u64.to_le_bytes());
    let files = [machine.write("system.journal", &sample, 0), machine.write("user-1.journal", &damaged, 0)];
    let mut source = machine.start();
    files.iter().for_each(|file| file.write_all_at(&10_u64.to_le_bytes(), ENTRIES_AT).expect("written"));
    assert_eq!(tick(&mut source), (1000..1010).collect::<Vec<u32>>());
    assert_eq!((source.failed, source.journal.open_files()), (1, 1));
}

#[test]
fn a_truncated_file_is_read_as_far_as_it_goes() {
    let bytes = journal_sample("none-regular");
    let everything = filter(&[]);
    let whole = read_all(bytes.as_slice(), &everything).len();
    let end = bytes.iter().rposition(|&byte| byte != 0).expect("not empty");
    let mut counts = Vec::new();
    for length in (end.saturating_sub(150_000)..end + 8).step_by(997) {
        let mut file = JournalFile::open(&bytes[..length]).expect("a journal");
        let mut values = Values::default();
        let mut read = 0;
        loop {
            match file.next() {
                Ok(Some(_)) => read += usize::from(file.read_values(&everything, &mut values)),
                Ok(None) | Err(ReadError::File(_)) => break,
                Err(ReadError::Entry) => {}
            }
        }
        counts.push(read);
    }
    assert!(counts.is_sorted() && counts[0] < whole, "{counts:?}");
}
