use esatto_protozero::{HeapBuffer, View};

use crate::sample::{SampleDecoder, SampleReader};

#[test]
fn in_the_order_of_the_bytes() {
    let bytes = b"\x08\x96\x01\x12\x03a\"\xff\x0d\x01\x00\x00\x00\x08\x02";
    let shown = r#"View {1: Varint(150), 2: Bytes(b"a\"\xff"), 1: Fixed32(1), 1: Varint(2)}"#;
    assert_eq!(format!("{:?}", View::new(bytes)), shown);
    assert_eq!(format!("{:?}", SampleReader::new(bytes)), format!("SampleReader({shown})"));
    assert_eq!(format!("{:?}", SampleDecoder::decode(bytes)), format!("SampleReader({shown})"));
}

#[test]
fn with_the_bytes_that_are_no_field() {
    assert_eq!(
        format!("{:?}", View::new(b"\x08\x01\x12\x09a")),
        r#"View {1: Varint(1), malformed: Bytes(b"\x12\ta")}"#
    );
    assert_eq!(format!("{:?}", View::new(b"")), "View {}");
}

#[test]
fn an_open_one_shows_its_length() {
    let mut buffer = HeapBuffer::new();
    let mut message = buffer.message();
    message.string(1, "one");
    assert_eq!(format!("{message:?}"), "Message { len: 5, .. }");
}
