//! Call stacks: mappings, frames and call sites of the interned data of sequences.

use esatto_protozero::{Field, Fields};
use esatto_schema::{
    address_symbols, callstack, frame, interned_data::field as interned, interned_string, line, mapping,
    module_symbols, profile_packet,
};
use hashbrown::HashMap;

use super::tokenizer::Tokenizer;
use crate::string_table::{Strings, Symbol};
use crate::tables::{CallsiteRow, FrameRow, MappingRow, Row, SymbolRow, Tables, signed};

/// Frames of a call stack that are read.
const MAX_FRAMES: usize = 1 << 12;
/// Frames, call stacks and mappings that belong to one process of a sequence. Those that come after
/// so many are shared by all processes, so that few bytes that name many processes do not become
/// many rows.
const MAX_ROWS_OF_PROCESSES: usize = 1 << 20;
/// Length of a build id that is text: that of a module of Chromium.
const CHROMIUM_BUILD_ID: usize = 33;

/// Where the numbers of a call stack are looked up.
#[derive(Debug, Clone, Copy)]
struct Scope {
    sequence: usize,
    /// The generation of the interned data.
    generation: usize,
    /// The process whose memory it is, if it is known.
    process: Option<i64>,
    /// The data is inside a heap profile.
    is_inline: bool,
}

/// Returns the field of a heap profile that has the entries of a table of interned data.
fn inline_field(table: u32) -> u32 {
    match table {
        interned::MAPPINGS => profile_packet::field::MAPPINGS,
        interned::FRAMES => profile_packet::field::FRAMES,
        interned::CALLSTACKS => profile_packet::field::CALLSTACKS,
        _ => profile_packet::field::STRINGS,
    }
}

impl Tokenizer {
    /// Keeps interned data inside a heap profile until the last packet of the profile.
    pub(super) fn keep_inline_stacks(&mut self, f: &Field<'_>, sequence: usize) {
        // Each entry begins with its number.
        let iid = Fields::new(f.as_bytes()).find(|part| part.id == 1).map_or(0, |part| part.as_u64());
        self.stacks.inline.entry(sequence).or_default().insert((f.id, iid), f.as_bytes().into());
    }

    /// Forgets the interned data inside a heap profile.
    pub(super) fn end_inline_stacks(&mut self, sequence: usize) {
        self.stacks.inline_profiles += usize::from(self.stacks.inline.remove(&sequence).is_some());
    }

    fn scope(&self, sequence: usize, pid: Option<i64>) -> Scope {
        let process = pid.filter(|_| self.stacks.rows_of_processes < MAX_ROWS_OF_PROCESSES);
        Scope { sequence, generation: self.generation(sequence), process, is_inline: false }
    }

    fn stack_entry(&self, scope: Scope, table: u32, iid: u64) -> Option<&[u8]> {
        if scope.is_inline {
            return Some(self.stacks.inline.get(&scope.sequence)?.get(&(inline_field(table), iid))?);
        }
        self.sequences[scope.sequence].state.entry(table, iid)
    }

    /// Returns an interned text. Number 0 is the empty one.
    fn stack_text(&mut self, scope: Scope, table: u32, iid: u64) -> Option<Vec<u8>> {
        if iid == 0 {
            return Some(Vec::new());
        }
        let Some(entry) = self.stack_entry(scope, table, iid) else {
            self.context.stats.count("stackprofile_invalid_string_id");
            return None;
        };
        let text = Fields::new(entry).find(|f| f.id == interned_string::field::STR);
        Some(text.map_or_else(Vec::new, |text| text.as_bytes().to_vec()))
    }

    /// Returns the mapping with a number of a sequence, in the memory of the sequence's process.
    pub(super) fn mapping(&mut self, sequence: usize, iid: u64) -> Option<Row> {
        let thread = self.context.generations[self.generation(sequence)].thread;
        let scope = self.scope(sequence, thread.map(|(pid, _)| pid));
        self.mapping_in(scope, iid)
    }

    fn mapping_in(&mut self, scope: Scope, iid: u64) -> Option<Row> {
        use mapping::field;
        let key = (scope.generation, scope.process, iid);
        if let Some(&row) = self.stacks.mappings.get(&key) {
            return Some(row);
        }
        let Some(entry) = self.stack_entry(scope, interned::MAPPINGS, iid) else {
            self.context.stats.count("stackprofile_invalid_mapping_id");
            return None;
        };
        let mut numbers = [0; 5];
        let (mut build_id, mut path) = (0, Vec::new());
        for f in Fields::new(entry) {
            match f.id {
                field::BUILD_ID => build_id = f.as_u64(),
                field::EXACT_OFFSET => numbers[0] = signed(f.as_u64()),
                field::START_OFFSET => numbers[1] = signed(f.as_u64()),
                field::START => numbers[2] = signed(f.as_u64()),
                field::END => numbers[3] = signed(f.as_u64()),
                field::LOAD_BIAS => numbers[4] = signed(f.as_u64()),
                field::PATH_STRING_IDS if path.len() < MAX_FRAMES => path.push(f.as_u64()),
                _ => {}
            }
        }
        let mut name = Vec::new();
        for part in path {
            let Some(part) = self.stack_text(scope, interned::MAPPING_PATHS, part) else { break };
            name.push(b'/');
            name.extend(part);
        }
        let build_id = self.stack_text(scope, interned::BUILD_IDS, build_id)?;
        let strings = &mut self.context.tables.strings;
        let (build_id, name) = (add_build_id(&build_id, strings), strings.add(&name));
        let table = &mut self.context.tables.stack_profile_mapping;
        let mut add = || {
            let [exact_offset, start_offset, start, end, load_bias] = numbers;
            let (build_id, name) = (Some(build_id), Some(name));
            table.push(MappingRow { build_id, exact_offset, start_offset, start, end, load_bias, name })
        };
        let [_, _, start, end, _] = numbers;
        let row = if scope.process.is_some() && start != end {
            add()
        } else {
            *self.stacks.same_mappings.entry((numbers, build_id, name)).or_insert_with(add)
        };
        self.stacks.rows_of_processes += usize::from(scope.process.is_some());
        self.stacks.mappings.insert(key, row);
        Some(row)
    }

    fn frame(&mut self, scope: Scope, iid: u64) -> Option<Row> {
        use frame::field;
        let key = (scope.generation, scope.process, iid);
        if let Some(&row) = self.stacks.frames.get(&key) {
            return Some(row);
        }
        let Some(entry) = self.stack_entry(scope, interned::FRAMES, iid) else {
            self.context.stats.count("stackprofile_invalid_frame_id");
            return None;
        };
        let (mut function, mut mapping, mut rel_pc) = (0, 0, 0);
        for f in Fields::new(entry) {
            match f.id {
                field::FUNCTION_NAME_ID => function = f.as_u64(),
                field::MAPPING_ID => mapping = f.as_u64(),
                field::REL_PC => rel_pc = signed(f.as_u64()),
                _ => {}
            }
        }
        let mapping = self.mapping_in(scope, mapping)?;
        let name = self.stack_text(scope, interned::FUNCTION_NAMES, function)?;
        let name = (!name.is_empty()).then(|| self.context.tables.strings.add(&name));
        let table = &mut self.context.tables.stack_profile_frame;
        let row = *self.stacks.same_frames.entry((name, mapping, rel_pc)).or_insert_with(|| {
            table.push(FrameRow { name, mapping, rel_pc, symbol_set_id: None, deobfuscated_name: None })
        });
        self.stacks.rows_of_processes += usize::from(scope.process.is_some());
        self.stacks.frames.insert(key, row);
        Some(row)
    }

    /// Returns the call stack with a number of a sequence, in the memory of a process.
    pub(super) fn callsite(&mut self, sequence: usize, pid: i64, iid: u64) -> Option<Row> {
        let mut scope = self.scope(sequence, Some(pid));
        let inline = self.stacks.inline.get(&sequence);
        if inline.is_some_and(|inline| inline.contains_key(&(profile_packet::field::CALLSTACKS, iid))) {
            let generation = usize::MAX - self.stacks.inline_profiles;
            scope = Scope { generation, process: None, is_inline: true, ..scope };
        }
        let key = (scope.generation, scope.process, iid);
        if let Some(&row) = self.stacks.callsites.get(&key) {
            return Some(row);
        }
        let Some(entry) = self.stack_entry(scope, interned::CALLSTACKS, iid) else {
            self.context.stats.count("stackprofile_invalid_callstack_id");
            return None;
        };
        let frames = Fields::new(entry).filter(|f| f.id == callstack::field::FRAME_IDS).take(MAX_FRAMES);
        let frames: Vec<u64> = frames.map(|f| f.as_u64()).collect();
        let mut parent = None;
        for (depth, frame) in frames.into_iter().enumerate() {
            let frame_id = self.frame(scope, frame)?;
            self.stacks.rows_of_processes += usize::from(scope.process.is_some());
            let table = &mut self.context.tables.stack_profile_callsite;
            parent = Some(*self.stacks.same_callsites.entry((parent, frame_id)).or_insert_with(|| {
                let depth = u32::try_from(depth).unwrap_or(u32::MAX);
                table.push(CallsiteRow { depth, parent_id: parent, frame_id })
            }));
        }
        if parent.is_none() {
            self.context.stats.count("stackprofile_empty_callstack");
        }
        let row = parent?;
        self.stacks.callsites.insert(key, row);
        Some(row)
    }

    /// Keeps the symbols of a file until all frames are known.
    pub(super) fn keep_symbols(&mut self, bytes: &[u8]) {
        self.stacks.symbols.push(bytes.into());
    }

    /// Gives the frames of files their symbols.
    pub(super) fn resolve_symbols(&mut self) {
        let symbols = core::mem::take(&mut self.stacks.symbols);
        if symbols.is_empty() {
            return;
        }
        let tables = &mut self.context.tables;
        let mut mappings: HashMap<(Symbol, Symbol), Vec<Row>> = HashMap::new();
        let mapping = &tables.stack_profile_mapping;
        for (row, key) in mapping.name.iter().zip(&mapping.build_id).enumerate() {
            if let (Some(name), Some(build_id)) = key {
                mappings.entry((*name, *build_id)).or_default().push(Row::new(row));
            }
        }
        let mut frames: HashMap<(Row, i64), Vec<usize>> = HashMap::new();
        let frame = &tables.stack_profile_frame;
        for (row, key) in frame.mapping.iter().zip(&frame.rel_pc).enumerate() {
            frames.entry((*key.0, *key.1)).or_default().push(row);
        }
        for module in &symbols {
            let text = |id: u32| Fields::new(module).filter(|f| f.id == id).last().map_or(&[][..], |f| f.as_bytes());
            let path = tables.strings.add(text(module_symbols::field::PATH));
            let build_id = add_build_id(text(module_symbols::field::BUILD_ID), &mut tables.strings);
            let Some(mappings) = mappings.get(&(path, build_id)) else {
                self.context.stats.count("stackprofile_invalid_mapping_id");
                continue;
            };
            for place in Fields::new(module).filter(|f| f.id == module_symbols::field::ADDRESS_SYMBOLS) {
                let Some((address, set)) = add_symbols(place.as_bytes(), tables) else { continue };
                let found = mappings.iter().filter_map(|&mapping| frames.get(&(mapping, address))).flatten();
                let rows: Vec<usize> = found.copied().collect();
                if rows.is_empty() {
                    self.context.stats.count("stackprofile_invalid_frame_id");
                }
                for row in rows {
                    tables.stack_profile_frame.symbol_set_id[row] = Some(set);
                }
            }
        }
    }
}

/// Adds the lines of an address. Returns the address and the set of its symbols.
fn add_symbols(bytes: &[u8], tables: &mut Tables) -> Option<(i64, Row)> {
    use line::field;
    let set = Row::new(crate::tables::Table::rows(&tables.stack_profile_symbol));
    let (mut address, mut has_lines) = (0, false);
    for f in Fields::new(bytes) {
        match f.id {
            address_symbols::field::ADDRESS => address = signed(f.as_u64()),
            address_symbols::field::LINES => {
                let (mut name, mut file, mut number) = (&[][..], &[][..], None);
                for part in Fields::new(f.as_bytes()) {
                    match part.id {
                        field::FUNCTION_NAME => name = part.as_bytes(),
                        field::SOURCE_FILE_NAME => file = part.as_bytes(),
                        field::LINE_NUMBER => number = Some(part.as_u32()),
                        _ => {}
                    }
                }
                let name = Some(tables.strings.add(name));
                let source_file = (!file.is_empty()).then(|| tables.strings.add(file));
                let line_number = number.filter(|_| source_file.is_some());
                tables.stack_profile_symbol.push(SymbolRow { symbol_set_id: set, name, source_file, line_number });
                has_lines = true;
            }
            _ => {}
        }
    }
    has_lines.then_some((address, set))
}

fn add_build_id(build_id: &[u8], strings: &mut Strings) -> Symbol {
    if build_id.len() == CHROMIUM_BUILD_ID {
        return strings.add(build_id);
    }
    let digits: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    strings.add_str(&digits)
}
