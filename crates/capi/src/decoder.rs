//! The decoder (`docs/spec/c-abi.md` §8).

use esatto_protozero::wire::decode_varint;

use crate::abi::numbers::status;
use crate::abi::{DelimitedField, PbDecoder, PbDecoderField, PbValue};
use crate::ffi::{Mut, Slice};
use crate::panic_guard::{Fallback, guard};

/// Wire types.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const DELIMITED: u32 = 2;
const FIXED32: u32 = 5;

impl Fallback for PbDecoderField {
    const FALLBACK: Self = Self { status: status::ERROR, wire_type: 0, id: 0, value: PbValue { integer64: 0 } };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoPbDecoderParseField(decoder: Mut<'_, PbDecoder>) -> PbDecoderField {
    guard(|| {
        let Some(decoder) = decoder.get() else { return PbDecoderField::FALLBACK };
        let len = decoder.end_ptr.addr().saturating_sub(decoder.read_ptr.addr());
        // SAFETY: the contract: the decoder reads from `read_ptr` to `end_ptr`.
        let input = unsafe { Slice::new(decoder.read_ptr, len) }.get();
        if input.is_empty() {
            return PbDecoderField { status: status::DONE, ..PbDecoderField::FALLBACK };
        }
        let Some((field, len)) = parse(input) else { return PbDecoderField::FALLBACK };
        // SAFETY: the input has that many bytes.
        decoder.read_ptr = unsafe { decoder.read_ptr.add(len) };
        field
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoPbDecoderSkipField(decoder: Mut<'_, PbDecoder>) -> u32 {
    // SAFETY: the contract of both functions is the same. The guard of the other function is
    // enough.
    unsafe { PerfettoPbDecoderParseField(decoder) }.status
}

/// Returns the first field and its length in bytes.
fn parse(input: &[u8]) -> Option<(PbDecoderField, usize)> {
    let (tag, tag_len) = decode_varint(input)?;
    let id = u32::try_from(tag >> 3).ok()?;
    let wire_type = (tag & 7) as u32;
    let rest = &input[tag_len..];
    let (value, len) = match wire_type {
        VARINT => {
            let (value, len) = decode_varint(rest)?;
            (PbValue { integer64: value }, len)
        }
        FIXED64 => {
            let bytes = rest.first_chunk::<8>()?;
            (PbValue { integer64: u64::from_le_bytes(*bytes) }, 8)
        }
        FIXED32 => {
            let bytes = rest.first_chunk::<4>()?;
            // As 64 bits, so that the program finds all bytes of the union initialised.
            (PbValue { integer64: u64::from(u32::from_le_bytes(*bytes)) }, 4)
        }
        DELIMITED => {
            let (size, len) = decode_varint(rest)?;
            let content = rest[len..].get(..usize::try_from(size).ok()?)?;
            let value = DelimitedField { start: content.as_ptr(), len: content.len() };
            (PbValue { delimited: value }, len + content.len())
        }
        _ => return None,
    };
    Some((PbDecoderField { status: status::OK, wire_type, id, value }, tag_len + len))
}
