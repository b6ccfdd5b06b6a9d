//! Entries of tar archives.

use std::io::Read as _;

use tar::{EntryType, Header, PaxExtensions};

use super::{Data, Listing, MAX_ENTRIES, MAX_NAME_BYTES, too_many};
use crate::section::Section;

/// Size of a header. Data is padded to a multiple of it.
const BLOCK: u64 = 512;
/// Bytes of headers that extend the next one.
const MAX_EXTENSION_BYTES: u64 = 64 << 10;

/// Facts about the next entry, from headers before it.
#[derive(Debug, Default)]
struct Extensions {
    name: Option<Vec<u8>>,
    size: Option<u64>,
    is_sparse: bool,
}

pub(super) fn list(file: &Section) -> Result<Listing, String> {
    let mut listing = Listing::default();
    let (mut at, mut entries, mut extensions) = (0_u64, 0, Extensions::default());
    loop {
        let mut block = Vec::new();
        let mut header = file.part(at, BLOCK);
        header.read_to_end(&mut block).map_err(|error| error.to_string())?;
        if (block.len() as u64) < BLOCK {
            listing.damage = Some(format!("it ends at byte {} without the mark of its end", file.len()));
            break;
        }
        if block.iter().all(|byte| *byte == 0) {
            break;
        }
        let header = Header::from_byte_slice(&block);
        if !has_sum(header, &block) {
            listing.damage = Some(format!("the header at byte {at} is damaged, and nothing from there on is read"));
            break;
        }
        entries += 1;
        if entries > MAX_ENTRIES {
            return Err(too_many());
        }
        let Some(size) = extensions.size.or_else(|| header.entry_size().ok()) else {
            listing.damage = Some(format!("the header at byte {at} has no size, and nothing from there on is read"));
            break;
        };
        let data = at + BLOCK;
        let Some(next) = size.checked_next_multiple_of(BLOCK).and_then(|padded| data.checked_add(padded)) else {
            listing.damage =
                Some(format!("the entry at byte {at} has {size} bytes, and nothing from there on is read"));
            break;
        };
        at = next;
        let kind = header.entry_type();
        match kind {
            EntryType::GNULongName | EntryType::XHeader => {
                if size > MAX_EXTENSION_BYTES {
                    return Err(format!("a header has an extension of {size} bytes"));
                }
                let mut bytes = Vec::new();
                file.part(data, size).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
                extensions.read(kind, &bytes);
                continue;
            }
            EntryType::GNULongLink | EntryType::XGlobalHeader => continue,
            _ => {}
        }
        let Extensions { name, is_sparse, .. } = core::mem::take(&mut extensions);
        let name = name.unwrap_or_else(|| header.path_bytes().into_owned());
        match kind {
            EntryType::Regular | EntryType::Continuous if is_sparse => {
                listing.leave_out(&name, "it is stored with holes")
            }
            EntryType::Regular | EntryType::Continuous if name.len() > MAX_NAME_BYTES => {
                listing.leave_out(&name[..64], "its name is too long");
            }
            EntryType::Regular | EntryType::Continuous => {
                if data.saturating_add(size) > file.len() {
                    let there = file.len().saturating_sub(data);
                    let name = String::from_utf8_lossy(&name);
                    listing.damage = Some(format!("it ends after {there} of the {size} bytes of {name}"));
                }
                listing.add(&name, Data::Plain(file.part(data, size)));
            }
            EntryType::Directory => {}
            EntryType::GNUSparse => listing.leave_out(&name, "it is stored with holes"),
            _ => listing.leave_out(&name, "it is a link or a device"),
        }
        if listing.damage.is_some() {
            break;
        }
    }
    Ok(listing)
}

/// Returns whether the checksum of a header is right. It counts its own bytes as spaces.
fn has_sum(header: &Header, block: &[u8]) -> bool {
    const SUM: core::ops::Range<usize> = 148..156;
    let byte = |(at, byte): (usize, &u8)| if SUM.contains(&at) { u32::from(b' ') } else { u32::from(*byte) };
    let sum: u32 = block.iter().enumerate().map(byte).sum();
    header.cksum().is_ok_and(|announced| announced == sum)
}

impl Extensions {
    fn read(&mut self, kind: EntryType, bytes: &[u8]) {
        if kind == EntryType::GNULongName {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            self.name = Some(bytes[..end].to_vec());
            return;
        }
        for extension in PaxExtensions::new(bytes).flatten() {
            match extension.key_bytes() {
                b"path" => self.name = Some(extension.value_bytes().to_vec()),
                b"size" => self.size = extension.value().ok().and_then(|size| size.parse().ok()),
                key => self.is_sparse |= key.starts_with(b"GNU.sparse."),
            }
        }
    }
}
