//! [`PrintkFormats`]: constant strings of the kernel by their address.

use super::kernel_symbols::hex;

/// Bytes of all strings that are kept. Kernels have some hundred, of a few KiB.
const MAX_STRING_BYTES: usize = 1 << 20;

/// Constant strings of the kernel by their address, from `printk_formats`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PrintkFormats {
    text: Vec<u8>,
    /// Address, begin and length, sorted by address.
    strings: Vec<(u64, u32, u32)>,
}

impl PrintkFormats {
    /// Parses the file, whose lines are `0xADDRESS : "text"`.
    pub(crate) fn parse(file: &[u8]) -> Self {
        let mut formats = Self::default();
        for (address, text) in file.split(|byte| *byte == b'\n').filter_map(line) {
            if formats.text.len() + text.len() > MAX_STRING_BYTES {
                break;
            }
            formats.strings.push((address, formats.text.len() as u32, text.len() as u32));
            formats.text.extend_from_slice(text);
        }
        // If an address is there twice, the last line counts.
        formats.strings.sort_by_key(|(address, at, _)| (*address, core::cmp::Reverse(*at)));
        formats.strings.dedup_by_key(|(address, ..)| *address);
        formats
    }

    /// Returns the string at an address; an empty one if there is none.
    pub(crate) fn get(&self, address: u64) -> &[u8] {
        let found = self.strings.binary_search_by_key(&address, |(address, ..)| *address);
        found.map_or(&[], |at| {
            let (_, begin, len) = self.strings[at];
            &self.text[begin as usize..][..len as usize]
        })
    }
}

fn line(line: &[u8]) -> Option<(u64, &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (address, text) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
    let address = hex(address.strip_prefix(b"0x")?).filter(|address| *address != 0)?;
    let text = text.strip_prefix(b"\"").unwrap_or(text);
    let text = text.strip_suffix(b"\"").unwrap_or(text);
    (!text.is_empty()).then_some((address, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_found_by_their_address() {
        let file =
            b"0xffffffff82000010 : \"two: words\"\n0x10 : \"ten\"\n0x0 : \"zero\"\n0x20 : \"\"\nnonsense\n0x10 : \"last\"";
        let formats = PrintkFormats::parse(file);
        for (address, text) in [(0xffff_ffff_8200_0010, "two: words"), (0x10, "last"), (0, ""), (0x20, ""), (0x30, "")]
        {
            assert_eq!(formats.get(address), text.as_bytes(), "{address:#x}");
        }
    }
}
