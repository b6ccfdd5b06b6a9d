//! Archives that break rules cost little, and tell what is wrong.

use crate::{Folder, Trace, gzip, slices, tar, zip};
use esatto_inputs::{Inputs, MAX_ENTRIES};

fn trace() -> Vec<u8> {
    Trace::default().instant(10, "a").0
}

fn open(bytes: &[u8]) -> Result<Inputs, String> {
    let folder = Folder::new();
    Inputs::open(&[folder.write("archive", bytes)]).map_err(|error| error.to_string())
}

/// Position of the list of a zip archive with this first entry, and of its end.
fn place(zip: &[u8], magic: &[u8]) -> usize {
    zip.windows(magic.len()).position(|bytes| bytes == magic).unwrap()
}

#[test]
fn bombs_end_early() {
    // Packets with a sequence and a long field, again and again.
    let mut packet = vec![0x50, 1, 0xc2, 0xa9, 0x07, 0xe0, 0xd4, 0x03];
    packet.resize(packet.len() + 60_000, 0);
    let mut bomb = Vec::new();
    (0..500).for_each(|_| esatto_trace::write_packet(&mut bomb, &packet).unwrap());
    for archive in [zip(&[("a", &trace()), ("bomb", &bomb)]), tar(&[("a", &trace()), ("bomb", &gzip(&bomb))])] {
        assert!(archive.len() < 100 << 10);
        let inputs = open(&archive).unwrap();
        let (engine, summary) = inputs.read().unwrap();
        assert_eq!(slices(&engine).len(), 1);
        let errors: Vec<String> = summary.errors.iter().map(ToString::to_string).collect();
        let is_told = |error: &String| {
            error.starts_with("bomb: ") && (error.contains("too many") || error.contains("costs more work"))
        };
        assert!(errors.iter().any(is_told), "{errors:?}");
    }
    // The archive itself is compressed.
    let mut zeros = tar(&[("a", &trace())]);
    zeros.resize(64 << 20, 0);
    let error = open(&gzip(&zeros)).unwrap_err();
    assert!(error.contains("too many for its size"), "{error}");
}

#[test]
fn archives_of_very_many_entries_are_refused() {
    let name = |index: usize| format!("{index}");
    let names: Vec<String> = (0..=MAX_ENTRIES).map(name).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b"x"[..])).collect();
    for archive in [zip(&files), tar(&files)] {
        let error = open(&archive).unwrap_err();
        assert!(error.contains("more than 10000 entries"), "{error}");
    }
    // The end of the list lies, and tells of one.
    let mut lying = zip(&files);
    let end = lying.len() - 22;
    lying[end + 8..end + 12].copy_from_slice(&[1, 0, 1, 0]);
    match open(&lying) {
        Ok(inputs) => assert!(inputs.members().len() <= 1),
        Err(error) => assert!(!error.is_empty()),
    }
}

#[test]
fn sizes_that_lie_are_told() {
    // The list of a zip archive announces another size of the content.
    for (announced, why) in [(5_u32, "longer than the 5 bytes"), (1000, "of the 1000 bytes")] {
        let mut archive = zip(&[("a", &trace())]);
        let list = place(&archive, b"PK\x01\x02");
        archive[list + 24..list + 28].copy_from_slice(&announced.to_le_bytes());
        let errors = match open(&archive) {
            Ok(inputs) => inputs.read().unwrap().1.errors.iter().map(ToString::to_string).collect(),
            Err(error) => vec![error],
        };
        assert!(errors.iter().any(|error| error.contains(why)), "{errors:?}");
    }
    // A header of a tar archive announces more than there is.
    let mut archive = tar(&[("a", &trace())]);
    archive.truncate(512 + trace().len());
    archive[124..136].copy_from_slice(b"00000777777\0");
    sum(&mut archive[..512]);
    let inputs = open(&archive).unwrap();
    assert!(inputs.errors()[0].1.contains("of the 262143 bytes of a"), "{:?}", inputs.errors());
    assert_eq!(slices(&inputs.read().unwrap().0).len(), 1);
}

/// Writes the checksum of a header of a tar archive.
fn sum(header: &mut [u8]) {
    header[148..156].copy_from_slice(b"        ");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

#[test]
fn torn_archives_give_what_they_have() {
    let files = [("a", trace()), ("b", Trace::default().instant(20, "b").0)];
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (*name, &bytes[..])).collect();
    let whole = tar(&files);
    let inputs = open(&whole[..1024 + 512]).unwrap();
    assert_eq!(inputs.members().len(), 1);
    assert!(inputs.errors()[0].1.contains("it ends after 0 of"), "{:?}", inputs.errors());
    // The list of a zip archive is at its end.
    let whole = zip(&files);
    assert!(open(&whole[..whole.len() - 30]).is_err());
    for length in (0..whole.len()).step_by(2) {
        let _ = open(&whole[..length]).map(|inputs| inputs.read().map(|_| ()));
    }
}

#[test]
fn names_are_only_names() {
    let trace = trace();
    let names = ["/etc/passwd", "../../x", "a\u{1b}[31m\n", "C:\\x"];
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (*name, &trace[..])).collect();
    let inputs = open(&zip(&files)).unwrap();
    assert_eq!(inputs.members().len(), names.len());
    let (engine, summary) = inputs.read().unwrap();
    assert_eq!(slices(&engine).len(), names.len());
    let text = summary.to_string();
    assert!(!text.contains('\u{1b}') && text.contains("/etc/passwd"), "{text}");
}

#[test]
fn names_that_occur_twice() {
    let trace = trace();
    let archive = tar(&[("a", &trace), ("a", &trace)]);
    let inputs = open(&archive).unwrap();
    assert_eq!(slices(&inputs.read().unwrap().0).len(), 2);
    // A manifest could mean either of them.
    let manifest = br#"{"perfetto_manifest": {"version": 1, "files": [{"path": "a"}]}}"#;
    let error = open(&tar(&[("a", &trace), ("a", &trace), ("m", manifest)])).unwrap_err();
    assert!(error.contains("\"a\" is the name of several files"), "{error}");
    // A zip archive has a list, in which the last one counts.
    let mut archive = zip(&[("a", &trace), ("b", &trace)]);
    for at in 0..archive.len() - 4 {
        // The name follows the headers of both kinds.
        let length = match &archive[at..at + 4] {
            b"PK\x03\x04" => 30,
            b"PK\x01\x02" => 46,
            _ => continue,
        };
        archive[at + length] = b'a';
    }
    let inputs = open(&archive).unwrap();
    assert!(inputs.errors()[0].1.contains("1 entries have the name of another one"), "{:?}", inputs.errors());
}

#[test]
fn encrypted_and_foreign_entries_are_told() {
    let mut archive = zip(&[("a", &trace()), ("b", &trace())]);
    for (magic, at) in [(&b"PK\x03\x04"[..], 6), (b"PK\x01\x02", 8)] {
        let header = place(&archive, magic);
        archive[header + at] |= 1;
    }
    let inputs = open(&archive).unwrap();
    assert_eq!(inputs.members().len(), 1);
    assert_eq!(inputs.notes(), ["a is left out: it is encrypted"]);
    let mut archive = zip(&[("a", &trace()), ("b", &trace())]);
    for (magic, at) in [(&b"PK\x03\x04"[..], 8), (b"PK\x01\x02", 10)] {
        let header = place(&archive, magic);
        // LZMA.
        archive[header + at] = 14;
    }
    let inputs = open(&archive).unwrap();
    assert!(inputs.notes()[0].starts_with("a is left out: it is compressed by"), "{:?}", inputs.notes());
}

#[test]
fn archives_in_archives_are_not_read() {
    let inner = zip(&[("a", &trace())]);
    let inputs = open(&tar(&[("a", &trace()), ("inner.zip", &inner)])).unwrap();
    assert_eq!(inputs.errors(), [("inner.zip".to_owned(), "an archive in an archive is not read".to_owned())]);
    let error = open(&tar(&[("inner.zip", &inner)])).unwrap_err();
    assert!(error.contains("there is no trace in it: inner.zip: an archive in an archive"), "{error}");
    let error = open(&zip(&[("x", b"text")])).unwrap_err();
    assert!(error.contains("there is no trace in it: x is left out"), "{error}");
    let error = open(&zip(&[])).unwrap_err();
    assert!(error.contains("there is no trace in it"), "{error}");
}

#[test]
fn changed_bytes_do_no_harm() {
    let trace = trace();
    let manifest = br#"{"perfetto_manifest": {"version": 1, "files": [{"path": "a", "machine": {"name": "x"}}]}}"#;
    let files: &[(&str, &[u8])] = &[("a", &trace), ("m", manifest)];
    for archive in [zip(files), tar(files)] {
        for at in (0..archive.len().min(2000)).step_by(3) {
            for value in [0, 0x7f, 0xff] {
                let mut changed = archive.clone();
                changed[at] = value;
                let _ = open(&changed).map(|inputs| inputs.read().map(|_| ()));
            }
        }
    }
}
