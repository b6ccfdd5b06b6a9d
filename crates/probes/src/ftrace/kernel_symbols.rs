//! [`KernelSymbols`]: names of the kernel's functions.
//!
//! A kernel has some hundred thousand functions. Their names share most of their words, so a name
//! is kept as a list of words. A word ends after `_` or `.`. The symbols are sorted by address, and
//! stored in blocks, of which only the first address is stored in full:
//!
//! ```text
//!   block:   address ──▶ symbol symbol symbol …
//!   symbol:  varint: distance from the symbol before
//!            varints: number of each word × 2, + 1 for the last word
//! ```

/// A symbol of more than this distance from an address is not its function.
const MAX_FUNCTION_BYTES: u64 = 1 << 20;
/// Bytes of a name that are kept.
const MAX_NAME_BYTES: usize = 128;
/// Symbols that are kept.
const MAX_SYMBOLS: usize = 1 << 20;
/// Bytes of a line. Longer ones are no symbols.
const MAX_LINE_BYTES: usize = 1024;

/// Symbols in a block.
const BLOCK: usize = 16;

/// Names of the kernel's functions by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelSymbols {
    words: Words,
    /// Address of the first symbol of each block, and the offset of the block in `symbols`.
    blocks: Vec<(u64, u32)>,
    symbols: Vec<u8>,
    len: usize,
}

/// Parser of `/proc/kallsyms`, which takes the file in pieces.
#[derive(Debug)]
pub(crate) struct KernelSymbolsParser {
    words: WordTable,
    /// Address of each symbol, and the offset of its words in `names`.
    symbols: Vec<(u64, u32)>,
    names: Vec<u8>,
    /// Begin of a line whose end is in the next piece.
    line: Vec<u8>,
}

/// Words, without separators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Words {
    text: Vec<u8>,
    ends: Vec<u32>,
}

/// Words, and a hash table of them.
#[derive(Debug)]
struct WordTable {
    words: Words,
    /// Numbers of words, + 1; 0 is a free slot. Its length is a power of two.
    slots: Vec<u32>,
}

impl KernelSymbols {
    /// Parses a whole file.
    pub(crate) fn parse(file: &[u8]) -> Self {
        let mut parser = KernelSymbolsParser::new();
        parser.push(file);
        parser.finish()
    }

    /// True if no symbol has an address. The kernel shows all as 0 to users without rights.
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of symbols.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes of memory that the table takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.words.text.len() + size_of_val(&*self.words.ends) + size_of_val(&*self.blocks) + self.symbols.len()
    }

    /// Writes the name of the function at an address into `name`: the symbol with the nearest lower
    /// address. Returns false if there is none.
    pub(crate) fn look_up(&self, address: u64, name: &mut Vec<u8>) -> bool {
        name.clear();
        let after = self.blocks.partition_point(|(first, _)| *first <= address);
        let Some((first, at)) = after.checked_sub(1).map(|block| self.blocks[block]) else { return false };
        let mut rest = &self.symbols[at as usize..];
        let (mut found, mut symbol, mut words) = (first, first, &[][..]);
        for _ in 0..BLOCK {
            let Some(distance) = take_varint(&mut rest) else { break };
            symbol = symbol.wrapping_add(distance);
            if symbol > address {
                break;
            }
            (found, words) = (symbol, rest);
            while take_varint(&mut rest).is_some_and(|word| word & 1 == 0) {}
        }
        if address - found > MAX_FUNCTION_BYTES {
            return false;
        }
        while let Some(word) = take_varint(&mut words) {
            name.extend_from_slice(self.words.get((word / 2) as usize));
            if word & 1 == 1 {
                break;
            }
        }
        true
    }
}

impl KernelSymbolsParser {
    pub(crate) fn new() -> Self {
        let words = WordTable { words: Words::default(), slots: vec![0; 1024] };
        Self { words, symbols: Vec::new(), names: Vec::new(), line: Vec::new() }
    }

    /// Parses the next piece of the file.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        let mut lines = piece.split(|byte| *byte == b'\n');
        let first = lines.next().unwrap_or_default();
        let Some(mut line) = lines.next() else { return self.keep(first) };
        if self.line.is_empty() {
            self.push_line(first);
        } else {
            self.keep(first);
            let line = core::mem::take(&mut self.line);
            self.push_line(&line);
            self.line = line;
            self.line.clear();
        }
        for next in lines {
            self.push_line(line);
            line = next;
        }
        self.keep(line);
    }

    /// Keeps the begin of a line for the next piece.
    fn keep(&mut self, part: &[u8]) {
        let room = (MAX_LINE_BYTES + 1).saturating_sub(self.line.len());
        self.line.extend_from_slice(&part[..part.len().min(room)]);
    }

    fn push_line(&mut self, line: &[u8]) {
        if let Some((address, name)) = symbol(line).filter(|_| self.symbols.len() < MAX_SYMBOLS) {
            self.symbols.push((address, self.names.len() as u32));
            let mut words = name.split_inclusive(|byte| matches!(byte, b'_' | b'.')).peekable();
            while let Some(word) = words.next() {
                let number = u64::from(self.words.number_of(word));
                push_varint(&mut self.names, number * 2 + u64::from(words.peek().is_none()));
            }
        }
    }

    /// Returns the symbols.
    pub(crate) fn finish(mut self) -> KernelSymbols {
        let line = core::mem::take(&mut self.line);
        self.push_line(&line);
        let Self { words, symbols: mut sorted, names, .. } = self;
        // Of several symbols with one address, the last counts.
        sorted.sort_by_key(|(address, at)| (*address, core::cmp::Reverse(*at)));
        sorted.dedup_by_key(|(address, _)| *address);
        let mut blocks = Vec::with_capacity(sorted.len().div_ceil(BLOCK));
        let mut symbols = Vec::with_capacity(names.len() + 2 * sorted.len());
        for block in sorted.chunks(BLOCK) {
            let mut before = block[0].0;
            blocks.push((before, symbols.len() as u32));
            for (address, at) in block {
                push_varint(&mut symbols, address - before);
                before = *address;
                let mut rest = &names[*at as usize..];
                while let Some(word) = take_varint(&mut rest) {
                    push_varint(&mut symbols, word);
                    if word & 1 == 1 {
                        break;
                    }
                }
            }
        }
        symbols.shrink_to_fit();
        let mut words = words.words;
        words.text.shrink_to_fit();
        words.ends.shrink_to_fit();
        KernelSymbols { words, blocks, symbols, len: sorted.len() }
    }
}

impl Words {
    fn get(&self, number: usize) -> &[u8] {
        let begin = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[begin as usize..self.ends[number] as usize]
    }
}

impl WordTable {
    /// Returns the number of a word, and adds the word if it is new.
    fn number_of(&mut self, word: &[u8]) -> u32 {
        if self.words.ends.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut slot = hash(word) & mask;
        while let Some(number) = self.slots[slot].checked_sub(1) {
            if self.words.get(number as usize) == word {
                return number;
            }
            slot = (slot + 1) & mask;
        }
        self.words.text.extend_from_slice(word);
        self.words.ends.push(self.words.text.len() as u32);
        self.slots[slot] = self.words.ends.len() as u32;
        self.slots[slot] - 1
    }

    #[cold]
    fn grow(&mut self) {
        let len = self.slots.len() * 2;
        self.slots.clear();
        self.slots.resize(len, 0);
        for number in 0..self.words.ends.len() {
            let mut slot = hash(self.words.get(number)) & (len - 1);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (len - 1);
            }
            self.slots[slot] = number as u32 + 1;
        }
    }
}

/// Returns address and name of a line `ADDRESS TYPE NAME`, if it is a function.
fn symbol(line: &[u8]) -> Option<(u64, &[u8])> {
    if line.len() > MAX_LINE_BYTES {
        return None;
    }
    let mut words = line.split(u8::is_ascii_whitespace);
    let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
    if !matches!(kind, b"t" | b"T") || name.is_empty() || name.starts_with(b"$") {
        return None;
    }
    let address = hex(address).filter(|address| *address != 0)?;
    let name = [&b".cfi_jt"[..], b".cfi"].iter().find_map(|suffix| name.strip_suffix(*suffix)).unwrap_or(name);
    (!name.is_empty()).then(|| (address, &name[..name.len().min(MAX_NAME_BYTES)]))
}

/// Returns a hexadecimal number without prefix.
pub(crate) fn hex(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0, |value, digit| Some(value << 4 | u64::from((*digit as char).to_digit(16)?)))
}

/// FNV-1a.
fn hash(word: &[u8]) -> usize {
    let hash = word
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    (hash ^ hash >> 32) as usize
}

fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Takes a varint off the begin of `bytes`.
fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let (value, len) = esatto_protozero::wire::decode_varint(bytes)?;
    *bytes = &bytes[len..];
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "ffffffff81000000 T _text\nffffffff81000100 t do_one.isra.0\nffffffff81000100 T do_one\n\
        ffffffff81000200 d data_is_no_function\nffffffff81000300 t $x\nffffffff81000400 t cfi_one.cfi_jt\n\
        ffffffff81000500 t __x_y__\t[module]\nffffffff80000000 t before\n";

    fn name(symbols: &KernelSymbols, address: u64) -> Option<String> {
        let mut name = Vec::new();
        symbols.look_up(address, &mut name).then(|| String::from_utf8(name).unwrap())
    }

    #[test]
    fn the_nearest_lower_symbol_is_the_function() {
        let symbols = KernelSymbols::parse(FILE.as_bytes());
        assert_eq!(symbols.len(), 5);
        for (address, expected) in [
            (0xffff_ffff_8100_0000, Some("_text")),
            (0xffff_ffff_8100_00ff, Some("_text")),
            (0xffff_ffff_8100_0150, Some("do_one")),
            (0xffff_ffff_8100_03ff, Some("do_one")),
            (0xffff_ffff_8100_0400, Some("cfi_one")),
            (0xffff_ffff_8100_0501, Some("__x_y__")),
            (0xffff_ffff_8110_0500, Some("__x_y__")),
            (0xffff_ffff_8110_0501, None),
            (0xffff_ffff_7fff_ffff, None),
            (0, None),
            (u64::MAX, None),
        ] {
            assert_eq!(name(&symbols, address).as_deref(), expected, "{address:#x}");
        }
    }

    #[test]
    fn pieces_of_a_file_give_the_same_table() {
        let whole = KernelSymbols::parse(FILE.as_bytes());
        for size in 1..60 {
            let mut parser = KernelSymbolsParser::new();
            FILE.as_bytes().chunks(size).for_each(|piece| parser.push(piece));
            assert_eq!(parser.finish(), whole, "{size}");
        }
    }

    #[test]
    fn hidden_addresses_give_an_empty_table() {
        let symbols = KernelSymbols::parse(b"0000000000000000 T _text\n0000000000000000 t do_one\n");
        assert!(symbols.is_empty());
        assert_eq!(name(&symbols, 0), None);
    }

    #[test]
    fn many_symbols_take_little_memory() {
        let file: String = (0..20_000_u64)
            .map(|at| {
                format!("{:016x} t some_function_{}_of_{}\n", 0xffff_ffff_8100_0000 + at * 64, at % 100, at / 100)
            })
            .collect();
        let symbols = KernelSymbols::parse(file.as_bytes());
        assert_eq!(name(&symbols, 0xffff_ffff_8100_0000 + 12_345 * 64 + 3).as_deref(), Some("some_function_45_of_123"));
        assert!(symbols.memory_bytes() < 20_000 * 12, "{}", symbols.memory_bytes());
    }
}
