use esatto_protozero::HeapBuffer;

use crate::fixture::wrapper::{EverythingReaderExt as _, EverythingWriterExt as _, everything_extension};
use crate::fixture::{EverythingReader, EverythingWriter};

#[test]
fn extensions_are_written_and_read_like_fields() {
    let mut buffer = HeapBuffer::new();
    let mut writer = EverythingWriter::from(buffer.message());
    writer.a_bool(true).extra_number(7).extra_text("text");
    writer.extra_messages();
    writer.extra_messages();
    drop(writer);

    let bytes = buffer.to_vec();
    let reader = EverythingReader::parse(&bytes).unwrap();
    assert_eq!(reader.extra_number(), Some(7));
    assert_eq!(reader.extra_text(), Some(&b"text"[..]));
    assert_eq!(reader.extra_messages().count(), 2);
    assert_eq!(reader.fields().nth(1).unwrap().id, everything_extension::EXTRA_NUMBER);
}

#[test]
fn decoders_read_extensions() {
    let mut buffer = HeapBuffer::new();
    EverythingWriter::from(buffer.message()).extra_number(7).a_bool(true).extra_number(8);
    let bytes = buffer.to_vec();
    let decoder = EverythingReader::new(&bytes).decoder();
    assert_eq!((decoder.a_bool(), decoder.extra_number(), decoder.extra_text()), (Some(true), Some(8), None));
    assert_eq!(decoder.unknown_fields().count(), 2, "of the message alone they are unknown");
}
