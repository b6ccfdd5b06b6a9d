//! Tables of call stacks, samples and heap profiles.

use super::Row;
use super::columns::table;
use crate::string_table::Symbol;

table! {
    /// Files that are mapped into processes.
    MappingTable of MappingRow as "stack_profile_mapping" {
        /// Its build id, in hexadecimal digits.
        build_id: Vec<Option<Symbol>>,
        /// Offset of its mapped part in the file, if the whole was mapped at once.
        exact_offset: Vec<i64>,
        /// Offset of its first part.
        start_offset: Vec<i64>,
        /// Its first address.
        start: Vec<i64>,
        /// The address after its last one.
        end: Vec<i64>,
        /// Distance of addresses in the file and in memory.
        load_bias: Vec<i64>,
        /// Its path.
        name: Vec<Option<Symbol>>,
    }
}

table! {
    /// Places in code.
    FrameTable of FrameRow as "stack_profile_frame" {
        /// The function.
        name: Vec<Option<Symbol>>,
        /// The file that contains it.
        mapping: Vec<Row>,
        /// Its address in that file.
        rel_pc: Vec<i64>,
        /// Functions and lines of the address: their first row in `stack_profile_symbol`.
        symbol_set_id: Vec<Option<Row>>,
        /// Its name before it was shortened.
        deobfuscated_name: Vec<Option<Symbol>>,
    }
}

table! {
    /// Functions and lines of addresses, in sets: the function that is inlined deepest comes first.
    SymbolTable of SymbolRow as "stack_profile_symbol" {
        /// The first row of the set.
        symbol_set_id: Vec<Row>,
        /// The function.
        name: Vec<Option<Symbol>>,
        /// Its source file.
        source_file: Vec<Option<Symbol>>,
        /// The line in that file.
        line_number: Vec<Option<u32>>,
    }
}

table! {
    /// Call stacks, as a tree: a row is a frame below those of its parent.
    CallsiteTable of CallsiteRow as "stack_profile_callsite" {
        /// Number of frames above it.
        depth: Vec<u32>,
        /// Its caller.
        parent_id: Vec<Option<Row>>,
        /// Its frame.
        frame_id: Vec<Row>,
    }
}

table! {
    /// Allocations and frees of heap profiles.
    AllocationTable of AllocationRow as "heap_profile_allocation" {
        /// Its time.
        ts: Vec<i64>,
        /// The process.
        upid: Vec<Row>,
        /// The allocator.
        heap_name: Vec<Option<Symbol>>,
        /// The call stack.
        callsite_id: Vec<Row>,
        /// Number of allocations; negative for frees.
        count: Vec<i64>,
        /// Bytes; negative for frees.
        size: Vec<i64>,
    }
}

table! {
    /// Samples of the kernel's perf events.
    PerfSampleTable of PerfSampleRow as "perf_sample" {
        /// Its time.
        ts: Vec<i64>,
        /// The thread.
        utid: Vec<Row>,
        /// The processor.
        cpu: Vec<Option<u32>>,
        /// `user`, `kernel` and so on.
        cpu_mode: Vec<Symbol>,
        /// The call stack.
        callsite_id: Vec<Option<Row>>,
        /// Reason for which the call stack is not whole.
        unwind_error: Vec<Option<Symbol>>,
        /// The instance of the data source.
        perf_session_id: Vec<u32>,
    }
}

table! {
    /// Samples of call stacks that programs took themselves.
    StackSampleTable of StackSampleRow as "cpu_profile_stack_sample" {
        /// Its time.
        ts: Vec<i64>,
        /// The call stack.
        callsite_id: Vec<Row>,
        /// The thread.
        utid: Vec<Row>,
        /// The priority of the process.
        process_priority: Vec<i32>,
    }
}
