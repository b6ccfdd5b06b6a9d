//! Numbers of texts, found by where the texts are.
//!
//! Equal texts of a column mostly are one text in memory: that of the dictionary of a page, or of a
//! trace. So the view of a text, which says where it is, is looked up in a small table first. Only
//! texts that are not found there are hashed and compared.

use arrow::array::{Array as _, ArrayRef, StringViewArray, UInt32Array};
use arrow::buffer::Buffer;
use arrow::compute::take;
use arrow::error::ArrowError;
use datafusion::physical_expr_common::binary_map::OutputType;
use datafusion::physical_expr_common::binary_view_map::ArrowBytesViewMap;

/// Views that are looked up without a hash of the text.
const SLOTS: usize = 4096;
/// Bytes of the longest text that is in its view.
const INLINE_BYTES: u32 = 12;
/// Numbers from this one on stand for texts of the batch that are not in the map yet.
const PENDING: u32 = 1 << 31;
/// A slot without a view.
const EMPTY: u32 = u32::MAX;
/// Rows after which the table of views is given up, if it finds less than half of them.
const TRIAL_ROWS: usize = 1 << 16;

#[derive(Debug, Clone, Copy)]
struct Slot {
    view: u128,
    /// The buffers that the view is about.
    buffers: u64,
    number: u32,
}

/// Gives each text a number, in the order in which they come first.
pub(super) struct TextNumbers {
    map: ArrowBytesViewMap<usize>,
    len: usize,
    slots: Vec<Slot>,
    /// The number of NULL.
    null: Option<usize>,
    /// Buffers of the last batch. They are kept, so that no others are at their place.
    buffers: Vec<Buffer>,
    /// Number of the buffers.
    generation: u64,
    rows: usize,
    misses: usize,
    missed: Vec<u32>,
    found: Vec<usize>,
}

impl TextNumbers {
    pub(super) fn new() -> Self {
        Self {
            map: ArrowBytesViewMap::new(OutputType::Utf8View),
            len: 0,
            slots: vec![Slot { view: 0, buffers: 0, number: EMPTY }; SLOTS],
            null: None,
            buffers: Vec::new(),
            generation: 0,
            rows: 0,
            misses: 0,
            missed: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Returns how many texts have a number.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes of memory that it takes.
    pub(super) fn size(&self) -> usize {
        self.map.size() + self.slots.len() * size_of::<Slot>()
    }

    /// Returns all texts in the order of their numbers, and begins anew.
    pub(super) fn take(&mut self) -> ArrayRef {
        (self.len, self.null) = (0, None);
        self.slots.iter_mut().for_each(|slot| slot.number = EMPTY);
        self.map.take().into_state()
    }

    /// Puts the numbers of the texts of a column into `numbers`.
    pub(super) fn add(&mut self, texts: &StringViewArray, numbers: &mut Vec<usize>) -> Result<(), ArrowError> {
        numbers.clear();
        if self.rows > TRIAL_ROWS && self.misses > self.rows / 2 {
            let all: ArrayRef = std::sync::Arc::new(texts.clone());
            self.insert(&all);
            numbers.append(&mut self.found);
            return Ok(());
        }
        self.note_buffers(texts.data_buffers());
        self.missed.clear();
        for (row, &view) in texts.views().iter().enumerate() {
            if texts.is_null(row) {
                numbers.push(self.null.unwrap_or_else(|| self.miss(row)));
                continue;
            }
            let generation = if length(view) <= INLINE_BYTES { 0 } else { self.generation };
            let slot = &mut self.slots[place(view)];
            if (slot.view, slot.buffers) == (view, generation) && slot.number != EMPTY {
                numbers.push(slot.number as usize);
                continue;
            }
            let number = self.miss(row);
            self.slots[place(view)] =
                Slot { view, buffers: generation, number: u32::try_from(number).unwrap_or(EMPTY) };
            numbers.push(number);
        }
        self.rows += texts.len();
        self.misses += self.missed.len();
        self.settle(texts, numbers)
    }

    /// Notes a text that is not in the table. Returns the number that stands for it.
    fn miss(&mut self, row: usize) -> usize {
        let number = PENDING as usize + self.missed.len();
        self.missed.push(u32::try_from(row).expect("a batch has less than 2^32 rows"));
        number
    }

    /// Counts up if the views of a batch are about other buffers than before.
    fn note_buffers(&mut self, buffers: &[Buffer]) {
        let is_same = |(a, b): (&Buffer, &Buffer)| (a.as_ptr(), a.len()) == (b.as_ptr(), b.len());
        if buffers.len() != self.buffers.len() || !buffers.iter().zip(&self.buffers).all(is_same) {
            self.buffers = buffers.to_vec();
            self.generation += 1;
        }
    }

    /// Gives the texts that were missed their numbers.
    fn settle(&mut self, texts: &StringViewArray, numbers: &mut [usize]) -> Result<(), ArrowError> {
        if self.missed.is_empty() {
            return Ok(());
        }
        let missed = take(texts, &UInt32Array::from(core::mem::take(&mut self.missed)), None)?;
        self.insert(&missed);
        let is_pending = |number: usize| number >= PENDING as usize;
        for number in numbers.iter_mut().filter(|number| is_pending(**number)) {
            *number = self.found[*number - PENDING as usize];
        }
        for slot in self.slots.iter_mut().filter(|slot| slot.number != EMPTY && slot.number >= PENDING) {
            slot.number = u32::try_from(self.found[(slot.number - PENDING) as usize])
                .ok()
                .filter(|number| *number < PENDING)
                .unwrap_or(EMPTY);
        }
        Ok(())
    }

    /// Puts the numbers of texts into `self.found`.
    fn insert(&mut self, texts: &ArrayRef) {
        let Self { map, len, null, found, .. } = self;
        found.clear();
        map.insert_if_new(
            texts,
            |text| {
                let number = *len;
                *len += 1;
                if text.is_none() {
                    *null = Some(number);
                }
                number
            },
            |number| found.push(number),
        );
    }
}

/// Returns the length of a text.
#[allow(clippy::cast_possible_truncation, reason = "the lower half")]
const fn length(view: u128) -> u32 {
    view as u32
}

/// Returns the slot of a view.
#[allow(clippy::cast_possible_truncation, reason = "a part of the bits")]
const fn place(view: u128) -> usize {
    let word = (view as u64) ^ ((view >> 64) as u64).rotate_left(29);
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::AsArray as _;
    use std::collections::HashMap;

    /// Compares with a map of texts.
    fn check(batches: &[StringViewArray]) {
        let mut numbers = TextNumbers::new();
        let mut expected: HashMap<Option<String>, usize> = HashMap::new();
        let mut found = Vec::new();
        for batch in batches {
            numbers.add(batch, &mut found).expect("it has room");
            let texts = batch.iter().map(|text| text.map(str::to_owned));
            let wanted: Vec<usize> = texts
                .map(|text| {
                    let next = expected.len();
                    *expected.entry(text).or_insert(next)
                })
                .collect();
            // Texts that are new in a batch have numbers in the order of their rows.
            assert_eq!(found, wanted);
        }
        assert_eq!(numbers.len(), expected.len());
        let all = numbers.take();
        for (number, text) in all.as_string_view().iter().enumerate() {
            assert_eq!(expected.get(&text.map(str::to_owned)), Some(&number));
        }
        assert_eq!(numbers.len(), 0);
        if let Some(first) = batches.iter().find(|batch| !batch.is_empty()) {
            numbers.add(first, &mut found).expect("it has room");
            assert_eq!(found.first(), Some(&0), "it begins anew");
        }
    }

    fn texts(seed: u64, rows: usize, kinds: u64) -> StringViewArray {
        let mut random = seed | 1;
        let mut next = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            random >> 33
        };
        (0..rows)
            .map(|_| match next() % kinds {
                0 => None,
                1 => Some(String::new()),
                kind if kind % 2 == 0 => Some(format!("k{kind}")),
                kind => Some(format!("a text that is longer than its view {kind}")),
            })
            .collect()
    }

    #[test]
    fn numbers_are_those_of_the_texts() {
        check(&[]);
        check(&[texts(1, 0, 5)]);
        // Few texts, as many as slots, and many more.
        for kinds in [1, 3, 50, 4096, 1 << 40] {
            let batches: Vec<_> = (0..12).map(|seed| texts(seed + kinds, 8192, kinds)).collect();
            check(&batches);
        }
    }

    #[test]
    fn views_of_shared_and_reused_buffers_are_told_apart() {
        let whole = texts(7, 4000, 60);
        // Parts of one array share their buffers.
        let parts: Vec<_> = (0..40).map(|part| whole.slice(part * 100, 100)).collect();
        check(&parts);
        // The views of these are equal, and the texts are not. Each is gone before the next one.
        let mut numbers = TextNumbers::new();
        let mut found = Vec::new();
        for round in 0..100 {
            let text = format!("the text of round number {round:03}");
            let array: StringViewArray = [Some(text.as_str()), Some(text.as_str())].into_iter().collect();
            numbers.add(&array, &mut found).expect("it has room");
            assert_eq!(found, [round, round]);
        }
    }
}
