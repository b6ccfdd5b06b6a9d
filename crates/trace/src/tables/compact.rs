//! Columns that take little memory: small rows, and values that many rows lack.

use super::{Cell, Column, Row};

/// A column of rows of a table that is mostly small: a row takes two bytes, or four if a number
/// above 65535 occurs.
#[derive(Debug, Default)]
pub struct Narrow {
    small: Vec<u16>,
    wide: Option<Vec<Row>>,
}

impl Narrow {
    /// Returns the value of a row.
    pub fn get(&self, index: usize) -> Row {
        match &self.wide {
            None => of_small(self.small[index]),
            Some(wide) => wide[index],
        }
    }
}

/// The first row is 1, as in [`Row`].
fn of_small(number: u16) -> Row {
    Row::new(usize::from(number.saturating_sub(1)))
}

impl Column for Narrow {
    type Item = Row;

    fn append(&mut self, _: usize, item: Row) {
        match (&mut self.wide, u16::try_from(item.number())) {
            (None, Ok(number)) => self.small.push(number),
            (None, Err(_)) => {
                let small = core::mem::take(&mut self.small);
                let wide = self.wide.insert(small.into_iter().map(of_small).collect());
                wide.push(item);
            }
            (Some(wide), _) => wide.push(item),
        }
    }

    fn cell(&self, index: usize) -> Row {
        self.get(index)
    }
}

/// A column in which many rows have no value: a row without takes a bit and a half.
#[derive(Debug)]
pub struct Rare<T> {
    /// A bit for each row.
    has_value: Vec<u64>,
    /// The number of values before each word of bits.
    before: Vec<u32>,
    values: Vec<T>,
}

impl<T> Default for Rare<T> {
    fn default() -> Self {
        Self { has_value: Vec::new(), before: Vec::new(), values: Vec::new() }
    }
}

impl<T: Cell> Rare<T> {
    /// Returns the value of a row, if it has one.
    pub fn get(&self, index: usize) -> Option<T> {
        let (word, bit) = (index / 64, index % 64);
        let bits = *self.has_value.get(word)?;
        let is_before = bits & ((1 << bit) - 1);
        let has_value = bits >> bit & 1 == 1;
        has_value.then(|| self.values[self.before[word] as usize + is_before.count_ones() as usize])
    }
}

impl<T: Cell> Column for Rare<T> {
    type Item = Option<T>;

    fn append(&mut self, index: usize, item: Option<T>) {
        let (word, bit) = (index / 64, index % 64);
        if bit == 0 {
            self.has_value.push(0);
            let values = u32::try_from(self.values.len());
            self.before.push(values.expect("a table has less than 2^32 rows"));
        }
        if let Some(item) = item {
            self.has_value[word] |= 1 << bit;
            self.values.push(item);
        }
    }

    fn cell(&self, index: usize) -> Option<T> {
        self.get(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_rows_and_large_ones_are_kept() {
        for rows in [vec![0, 1, 65_534], vec![0, 65_535, 7], vec![1 << 31, 3]] {
            let mut column = Narrow::default();
            let rows: Vec<Row> = rows.into_iter().map(Row::new).collect();
            for (index, row) in rows.iter().enumerate() {
                column.append(index, *row);
            }
            let kept: Vec<Row> = (0..rows.len()).map(|index| column.get(index)).collect();
            assert_eq!(kept, rows);
        }
    }

    #[test]
    fn rows_with_and_without_values_are_kept() {
        for every in [1, 2, 3, 63, 64, 65, 1000] {
            let mut column = Rare::default();
            let item = |index: usize| (index % every == 0).then_some(index as u32);
            for index in 0..300 {
                column.append(index, item(index));
            }
            for index in 0..300 {
                assert_eq!(column.get(index), item(index), "row {index} of {every}");
            }
            assert_eq!(column.get(320), None);
        }
    }
}
