//! Third stage: unpacks the cruncher's parcels, checks them and builds an index of their words.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::{Mutex, PoisonError};
use std::thread;

use esatto::{Flow, counter, instant, slice};
use flate2::Crc;
use flate2::read::DeflateDecoder;

use super::categories::{INDEX, QUEUES};
use super::parcel::Parcel;
use super::queue::Queue;
use super::{MAX_FILE_BYTES, tracks};

const WORKERS: usize = 2;
const QUEUE_LIMIT: usize = 32;
/// Lengths of words that are indexed.
const WORD_BYTES: core::ops::RangeInclusive<usize> = 3..=24;
/// After so many documents, words that were seen only once are removed.
const COMPACT_EVERY: u64 = 256;

/// The index, and counts of the processed files.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) documents: u64,
    pub(crate) damaged: u64,
    /// Number of documents with the word.
    words: HashMap<String, u32>,
}

impl Index {
    pub(crate) fn distinct_words(&self) -> usize {
        self.words.len()
    }
}

/// Indexes parcels from `input` until it ends.
pub(crate) fn run(input: impl Read + Send) -> io::Result<Index> {
    let queue = Queue::new(QUEUE_LIMIT);
    let index = Mutex::new(Index::default());
    let work = || {
        while let Some((parcel, depth)) = queue.pop() {
            counter!(QUEUES, &tracks::TO_INDEX, depth);
            add(&parcel, &index);
        }
    };
    thread::scope(|scope| {
        let receiver = super::named(scope, "pipe-in", || super::receive(input, &queue, &tracks::TO_INDEX))?;
        let workers =
            (0..WORKERS).map(|n| super::named(scope, &format!("index-{n}"), work)).collect::<io::Result<Vec<_>>>()?;
        for worker in workers {
            super::joined(worker);
        }
        super::joined(receiver)
    })?;
    Ok(index.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn add(parcel: &Parcel, index: &Mutex<Index>) {
    let _index = slice!(INDEX, "index", file = parcel.id, path = &*parcel.path.to_string_lossy(), |e| e
        .end_flow(Flow::global(parcel.id)));
    let mut content = Vec::new();
    let intact = {
        let _unpack = slice!(INDEX, "unpack", bytes = parcel.content.len());
        let unpacked =
            DeflateDecoder::new(parcel.content.as_slice()).take(MAX_FILE_BYTES as u64).read_to_end(&mut content);
        unpacked.is_ok() && {
            let _verify = slice!(INDEX, "verify", bytes = content.len());
            let mut crc = Crc::new();
            crc.update(&content);
            crc.sum() == parcel.checksum
        }
    };
    if !intact {
        instant!(INDEX, "damaged parcel", file = parcel.id);
    }
    let words = {
        let _tokenize = slice!(INDEX, "tokenize", bytes = content.len());
        tokenize(&content)
    };
    merge(index, words, intact);
}

/// Returns the distinct words of a text in lower case.
fn tokenize(content: &[u8]) -> HashMap<String, u32> {
    let mut words = HashMap::new();
    for word in content.split(|byte| !byte.is_ascii_alphanumeric()) {
        if WORD_BYTES.contains(&word.len()) && !word[0].is_ascii_digit() {
            words.insert(String::from_utf8_lossy(word).to_ascii_lowercase(), 1);
        }
    }
    words
}

fn merge(index: &Mutex<Index>, words: HashMap<String, u32>, intact: bool) {
    let _merge = slice!(INDEX, "merge", words = words.len());
    let mut index = {
        let _wait = slice!(INDEX, "wait for index");
        index.lock().unwrap_or_else(PoisonError::into_inner)
    };
    index.documents += 1;
    index.damaged += u64::from(!intact);
    for (word, count) in words {
        *index.words.entry(word).or_default() += count;
    }
    if index.documents % COMPACT_EVERY == 0 {
        let before = index.words.len();
        let _compact = slice!(INDEX, "compact", words = before);
        index.words.retain(|_, documents| *documents > 1);
        instant!(INDEX, "compacted", removed = before - index.words.len(), kept = index.words.len());
    }
    counter!(INDEX, &tracks::WORDS, index.words.len());
    counter!(INDEX, &tracks::DOCUMENTS, index.documents);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_once_per_document() {
        let index = Mutex::new(Index::default());
        merge(&index, tokenize(b"one two, One; 3no no"), true);
        merge(&index, tokenize(b"two"), false);
        let index = index.into_inner().unwrap();
        assert_eq!((index.documents, index.damaged, index.distinct_words()), (2, 1, 2));
        assert_eq!(index.words["two"], 2);
        assert_eq!(index.words["one"], 1);
    }
}
