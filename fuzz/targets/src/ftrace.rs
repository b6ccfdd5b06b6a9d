//! Events of the kernel.

use esatto::producer::TraceWriter;
use esatto_probes::fuzzing::ftrace::{self, PageEncoder};

/// Formats that the kernel writes, and some that it could.
const EVENTS: [(&str, &str, &[u8]); 9] = [
    ("sched", "sched_switch", include_bytes!("../../../crates/probes/tests/pages/formats/sched_switch.format")),
    ("sched", "sched_waking", include_bytes!("../../../crates/probes/tests/pages/formats/sched_waking.format")),
    ("sched", "sched_wakeup", include_bytes!("../../../crates/probes/tests/pages/formats/sched_wakeup.format")),
    (
        "sched",
        "sched_process_exit",
        include_bytes!("../../../crates/probes/tests/pages/formats/sched_process_exit.format"),
    ),
    (
        "sched",
        "sched_process_exec",
        include_bytes!("../../../crates/probes/tests/pages/formats/sched_process_exec.format"),
    ),
    ("task", "task_rename", include_bytes!("../../../crates/probes/tests/pages/formats/task_rename.format")),
    ("task", "task_newtask", include_bytes!("../../../crates/probes/tests/pages/formats/task_newtask.format")),
    ("ftrace", "print", include_bytes!("../../../crates/probes/tests/pages/formats/print.format")),
    ("fuzz", "fuzz", MADE),
];

/// An event with a field of each kind that the others do not have.
const MADE: &[u8] = b"name: fuzz\nID: 1\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:__data_loc char[] a;\toffset:8;\tsize:4;\tsigned:0;\n\
    \tfield:__rel_loc char[] b;\toffset:12;\tsize:4;\tsigned:0;\n\
    \tfield:__data_loc u8[] c;\toffset:16;\tsize:4;\tsigned:0;\n\
    \tfield:__rel_loc u8[] d;\toffset:18;\tsize:4;\tsigned:0;\n\
    \tfield:void * e;\toffset:20;\tsize:8;\tsigned:0;\n\
    \tfield:dev_t f;\toffset:20;\tsize:4;\tsigned:0;\n\
    \tfield:ino_t g;\toffset:24;\tsize:8;\tsigned:0;\n\
    \tfield:const char * h;\toffset:24;\tsize:8;\tsigned:0;\n\
    \tfield:bool i;\toffset:9;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char j[3];\toffset:9;\tsize:3;\tsigned:0;\n\
    \tfield:unsigned long args[6];\toffset:8;\tsize:48;\tsigned:0;\n\
    \tfield:char k[];\toffset:30;\tsize:0;\tsigned:0;\n\nprint fmt: \"\"\n";

/// Bytes of a page in the fuzzer: few, so that several fit in an input.
const PAGE_SIZE: usize = 256;

/// An option byte, and pages of a ring buffer. They have 256 bytes, or 4096 if the option says so.
pub fn ftrace_pages(bytes: &[u8]) {
    let Some((options, pages)) = bytes.split_first() else { return };
    let page_size = if options & 4 == 0 { PAGE_SIZE } else { 4096 };
    let mut encoder = PageEncoder::new(EVENTS, page_size, options & 1 != 0, options & 2 != 0);
    encoder.set_symbols(b"ffffffff81000000 T _text\n0000000000000010 t low\n");
    let mut writer = TraceWriter::null();
    for (cpu, half) in (0..).zip(pages.chunks((pages.len() / 2).max(1))) {
        encoder.encode(cpu, half, &mut writer);
    }
    // A few hundred bytes for each event of at least four bytes: nothing multiplies.
    assert!(writer.written() <= 1000 + 600 * pages.len() as u64, "{} bytes", writer.written());
}

/// A `format` file, or `header_page`.
pub fn ftrace_format(bytes: &[u8]) {
    ftrace::format(bytes);
}

/// `/proc/kallsyms` or `printk_formats`.
pub fn ftrace_symbols(bytes: &[u8]) {
    ftrace::symbols(bytes);
}

/// The journal of a daemon that was killed.
pub fn ftrace_changes(bytes: &[u8]) {
    ftrace::changes(bytes);
}

/// A text that is read as `per_cpu/cpuN/stats` and as `kprobe_profile`.
pub fn ftrace_statistics(bytes: &[u8]) {
    ftrace::statistics(bytes);
}
