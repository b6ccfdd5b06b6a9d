//! The command `esatto-filter apply` on traces with compressed packets: it filters the packets
//! within, and refuses damaged and hostile ones.

use std::io::Write as _;

use crate::util::{Folder, Message, complaint, run_ok};
use esatto_filter::{Builder, MessageId, Version};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

const TIMESTAMP: u32 = 8;
const SECRET: u32 = 900;
const COMPRESSED_PACKETS: u32 = 50;
const ZSTD_COMPRESSED_PACKETS: u32 = 133;

fn packet(timestamp: u64) -> Message {
    let packet = Message::default().varint(TIMESTAMP, timestamp).bytes(SECRET, b"a secret");
    Message::default().message(1, packet)
}

fn filtered(timestamp: u64) -> Vec<u8> {
    Message::default().message(1, Message::default().varint(TIMESTAMP, timestamp)).0
}

fn zlib(content: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn container(field: u32, content: &[u8]) -> Vec<u8> {
    Message::default().message(1, Message::default().bytes(field, content)).0
}

/// Writes a filter of traces that allows timestamps and, like those of upstream, compressed
/// packets.
fn filter_file(folder: &Folder) -> String {
    let mut builder = Builder::new(Version::V2);
    builder.nested(1, MessageId(1)).unwrap().end_message();
    builder.pass(TIMESTAMP).unwrap().pass(COMPRESSED_PACKETS).unwrap();
    builder.pass(ZSTD_COMPRESSED_PACKETS).unwrap().end_message();
    folder.write("filter", &builder.build().unwrap().bytecode)
}

#[test]
fn with_zlib_and_with_zstd() {
    let folder = Folder::new("compressed");
    let filter = filter_file(&folder);
    let two = [packet(2).0, packet(3).0].concat();
    let zstd = zstd::bulk::compress(&packet(4).0, 3).unwrap();
    let nested = container(COMPRESSED_PACKETS, &zlib(&container(ZSTD_COMPRESSED_PACKETS, &zstd)));
    let trace = [
        packet(1).0,
        container(COMPRESSED_PACKETS, &zlib(&two)),
        container(ZSTD_COMPRESSED_PACKETS, &zstd),
        nested,
        packet(5).0,
    ]
    .concat();
    let expected: Vec<u8> = [1, 2, 3, 4, 4, 5].into_iter().flat_map(filtered).collect();

    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&trace).unwrap();
    let output = folder.path("out");
    for (name, trace) in [("plain", trace), ("gzipped", gzip.finish().unwrap())] {
        let input = folder.write("in", &trace);
        let usage = run_ok(&["apply", "-f", &filter, "--usage", &input, &output]);
        assert_eq!(std::fs::read(&output).unwrap(), expected, "{name}");
        let usage = String::from_utf8(usage).unwrap();
        assert!(usage.contains(" 6 1.8\n") && usage.contains("-6 1.900\n"), "{name}: {usage}");
    }
    // A link keeps pointing to the file, and the input may be the output.
    std::os::unix::fs::symlink(&output, folder.path("link")).unwrap();
    run_ok(&["apply", "-f", &filter, &folder.path("link"), &folder.path("link")]);
    assert!(std::fs::symlink_metadata(folder.path("link")).unwrap().is_symlink());
    assert_eq!(std::fs::read(&output).unwrap(), expected);
    assert_eq!(folder.names(), ["filter", "in", "link", "out"]);
}

#[test]
fn damage_leaves_no_result() {
    let folder = Folder::new("damaged");
    let filter = filter_file(&folder);
    let content = zlib(&[packet(2).0, packet(3).0].concat());
    let mut flipped = content.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0xff;
    let zstd = zstd::bulk::compress(&packet(4).0, 3).unwrap();
    let first = packet(1).0;
    let place = format!("compressed packet at byte {}", first.len());
    let cases: [(&str, u32, &[u8]); 5] = [
        ("a byte is wrong", COMPRESSED_PACKETS, &flipped),
        ("the end is missing", COMPRESSED_PACKETS, &content[..content.len() - 6]),
        ("no zlib at all", COMPRESSED_PACKETS, &packet(2).0),
        ("empty", COMPRESSED_PACKETS, b""),
        ("zstd without end", ZSTD_COMPRESSED_PACKETS, &zstd[..zstd.len() - 2]),
    ];
    for (name, field, content) in cases {
        let input = folder.write("in", &[&first[..], &container(field, content), &first].concat());
        let error = complaint(&["apply", "-f", &filter, &input, &folder.path("out")]);
        assert!(error.contains(&place) && error.contains("cannot inflate"), "{name}: {error}");
        assert_eq!(folder.names(), ["filter", "in"], "{name}");
    }
    // An older result stays.
    folder.write("out", b"older");
    complaint(&["apply", "-f", &filter, &folder.path("in"), &folder.path("out")]);
    assert_eq!(std::fs::read(folder.path("out")).unwrap(), b"older");
}

#[test]
fn a_bomb_is_refused() {
    let folder = Folder::new("bomb");
    let filter = filter_file(&folder);
    let many: Vec<u8> = (0..3_000_000).flat_map(|_| packet(1).0).collect();
    let input = folder.write("in", &container(COMPRESSED_PACKETS, &zlib(&many)));
    let error = complaint(&["apply", "-f", &filter, &input, &folder.path("out")]);
    assert!(error.contains("more work than a trace of this size may cost"), "{error}");
    assert_eq!(folder.names(), ["filter", "in"]);
}

#[test]
fn a_single_compressed_packet_is_refused() {
    let folder = Folder::new("packet");
    let filter = filter_file(&folder);
    let packet = Message::default().bytes(COMPRESSED_PACKETS, &zlib(&packet(2).0));
    let input = folder.write("in", &packet.0);
    let args = ["apply", "-f", &filter, "--root", "1", &input, &folder.path("out")];
    let error = complaint(&args);
    assert!(error.contains("filter the whole trace, without --root"), "{error}");
    assert_eq!(folder.names(), ["filter", "in"]);
    run_ok(&[&args[..], &["--not-a-trace"]].concat());
    assert_eq!(std::fs::read(folder.path("out")).unwrap(), packet.0);
}

#[test]
fn other_messages_may_have_such_fields() {
    let folder = Folder::new("other");
    let filter = filter_file(&folder);
    let message = Message::default().message(1, Message::default().bytes(COMPRESSED_PACKETS, b"a note"));
    let input = folder.write("in", &message.0);
    let output = folder.path("out");
    assert!(complaint(&["apply", "-f", &filter, &input, &output]).contains("cannot inflate"));
    run_ok(&["apply", "-f", &filter, "--not-a-trace", &input, &output]);
    assert_eq!(std::fs::read(output).unwrap(), message.0);
}
