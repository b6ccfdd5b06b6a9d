//! The decoder (`docs/spec/c-abi.md` §8).

use esatto_protozero::wire::decode_varint;

use crate::abi::{DelimitedField, PbDecoder, PbDecoderField, PbValue, status};
use crate::guard::{Nothing, guard};
use crate::text;

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const DELIMITED: u32 = 2;
const FIXED32: u32 = 5;

impl Nothing for PbDecoderField {
    const NOTHING: Self = Self { status: status::ERROR, wire_type: 0, id: 0, value: PbValue { integer64: 0 } };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoPbDecoderParseField(decoder: *mut PbDecoder) -> PbDecoderField {
    guard(|| {
        // SAFETY: the contract: valid, or null.
        let Some(decoder) = (unsafe { decoder.as_mut() }) else { return PbDecoderField::NOTHING };
        let len = decoder.end_ptr.addr().saturating_sub(decoder.read_ptr.addr());
        // SAFETY: the contract: the decoder reads from `read_ptr` to `end_ptr`.
        let input = unsafe { text::block(decoder.read_ptr, len) };
        if input.is_empty() {
            return PbDecoderField { status: status::DONE, ..PbDecoderField::NOTHING };
        }
        let Some((field, len)) = parse(input) else { return PbDecoderField::NOTHING };
        // SAFETY: as many bytes were there.
        decoder.read_ptr = unsafe { decoder.read_ptr.add(len) };
        field
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoPbDecoderSkipField(decoder: *mut PbDecoder) -> u32 {
    // SAFETY: the contract, which is that of the other one, and so is the guard.
    unsafe { PerfettoPbDecoderParseField(decoder) }.status
}

/// The first field and the bytes it takes.
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
            // As 64 bits, so that none of them is left to chance.
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
