//! The same program with additional messages that it does not use.

#[allow(warnings, clippy::all)]
mod every_field {
    include!(concat!(env!("OUT_DIR"), "/every_field.rs"));
}

#[allow(warnings, clippy::all)]
mod packet {
    include!(concat!(env!("OUT_DIR"), "/packet.rs"));
}

fn main() {
    let mut buffer = esatto_protozero::HeapBuffer::new();
    every_field::EveryFieldWriter::from(buffer.message()).field_int32(std::hint::black_box(1));
    std::hint::black_box(buffer.as_slice());
}
