//! Entries of zip archives.

use std::io::{self, Read, Seek, SeekFrom};

use zip::CompressionMethod;
use zip::read::ZipArchive;

use super::{Data, Listing, MAX_ENTRIES, MAX_NAME_BYTES, too_many};
use crate::section::Section;

/// Begin of the record at the end of an archive.
const END: &[u8] = b"PK\x05\x06";
/// Bytes of this record without its comment, and with the longest one.
const END_BYTES: usize = 22;
const LONGEST_END: u64 = END_BYTES as u64 + u16::MAX as u64;
/// Bytes that are read to find the entries.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// A file of which only some bytes are read.
struct Limited {
    file: Section,
    left: u64,
}

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        let left = self.left.checked_sub(read as u64);
        self.left = left.ok_or_else(|| io::Error::other(format!("its list has more than {MAX_LIST_BYTES} bytes")))?;
        Ok(read)
    }
}

impl Seek for Limited {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

pub(super) fn list(file: &Section) -> Result<Listing, String> {
    let announced = announced_entries(file.clone()).map_err(|error| error.to_string())?;
    if announced.is_some_and(|entries| entries > MAX_ENTRIES) {
        return Err(too_many());
    }
    let mut archive =
        ZipArchive::new(Limited { file: file.clone(), left: MAX_LIST_BYTES }).map_err(|error| error.to_string())?;
    if archive.len() > MAX_ENTRIES {
        return Err(too_many());
    }
    let mut listing = Listing::default();
    if let Some(twice) = announced.and_then(|entries| entries.checked_sub(archive.len())).filter(|twice| *twice > 0) {
        // The list of an archive has each name once.
        listing.damage = Some(format!("{twice} entries have the name of another one, and only the last one is read"));
    }
    for index in 0..archive.len() {
        let own_name = archive.name_for_index(index).unwrap_or_default().to_owned();
        let entry = match archive.by_index_raw(index) {
            Ok(entry) => entry,
            Err(error) => {
                listing.damage = Some(format!("{own_name}: {error}"));
                continue;
            }
        };
        let name = entry.name().as_bytes();
        if entry.is_dir() {
            continue;
        }
        let is_deflated = match entry.compression() {
            CompressionMethod::Stored => false,
            CompressionMethod::Deflated => true,
            other => {
                let why = format!("it is compressed by {other}; only deflate is read");
                listing.leave_out(name, &why);
                continue;
            }
        };
        if name.len() > MAX_NAME_BYTES {
            listing.leave_out(&name[..64], "its name is too long");
        } else if entry.encrypted() {
            listing.leave_out(name, "it is encrypted");
        } else if entry.is_symlink() {
            listing.leave_out(name, "it is a link");
        } else if let Some(begin) = entry.data_start() {
            let section = file.part(begin, entry.compressed_size());
            let (size, crc) = (entry.size(), entry.crc32());
            listing.add(name, Data::Zip { section, is_deflated, size, crc });
        }
    }
    Ok(listing)
}

/// Returns the number of entries that the end of the archive announces; none if it does not tell
/// there.
fn announced_entries(mut file: Section) -> io::Result<Option<usize>> {
    let begin = file.len().saturating_sub(LONGEST_END);
    file.seek(SeekFrom::Start(begin))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let last = tail.len().checked_sub(END_BYTES);
    let at = last.and_then(|last| (0..=last).rev().find(|&at| tail[at..].starts_with(END)));
    let number = at.and_then(|at| Some(u16::from_le_bytes(tail.get(at + 10..at + 12)?.try_into().ok()?)));
    // The largest number stands for one that is elsewhere.
    Ok(number.filter(|number| *number != u16::MAX).map(usize::from))
}
