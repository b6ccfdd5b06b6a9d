//! [`TestFolder`]: a folder that a test may fill, such as with the files of a tracefs.

use std::path::{Path, PathBuf};

/// A folder that is removed at the end of the test.
pub(crate) struct TestFolder(PathBuf);

impl TestFolder {
    /// `name` is that of no other test.
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("esatto-probes-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, file: &str, content: &str) {
        let path = self.0.join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, content).expect("a file");
    }

    pub(crate) fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.join(file)).unwrap_or_else(|why| panic!("{file}: {why}"))
    }

    /// Makes the files of a tracefs with these CPUs and the recorded formats of scheduling events.
    pub(crate) fn with_tracefs(self, cpus: u32) -> Self {
        for (file, content) in [
            ("trace", ""),
            ("tracing_on", "1\n"),
            ("current_tracer", "nop\n"),
            ("trace_clock", "[local] global boot mono_raw\n"),
            ("buffer_size_kb", "7 (expanded: 1408)\n"),
            ("buffer_percent", "50\n"),
            ("tracing_cpumask", "3\n"),
            ("set_event", ""),
            ("set_event_pid", ""),
            ("kprobe_events", ""),
            ("kprobe_profile", ""),
            ("options/overwrite", "1\n"),
            ("set_ftrace_filter", "#### all functions enabled ####\n"),
            ("set_graph_function", "#### all functions enabled ####\n"),
            ("max_graph_depth", "0\n"),
            ("printk_formats", ""),
            ("events/enable", "0\n"),
            ("events/raw_syscalls/sys_enter/filter", "none\n"),
            ("events/raw_syscalls/sys_exit/filter", "none\n"),
        ] {
            self.write(file, content);
        }
        self.write("events/header_page", &recorded("header_page"));
        for (number, event) in [
            "sched/sched_switch",
            "sched/sched_waking",
            "sched/sched_wakeup",
            "sched/sched_process_exec",
            "sched/sched_process_exit",
            "task/task_newtask",
            "task/task_rename",
            "ftrace/print",
        ]
        .into_iter()
        .enumerate()
        {
            let name = event.rsplit('/').next().unwrap_or_default();
            self.write(&format!("events/{event}/format"), &recorded(&format!("formats/{name}.format")));
            if number < 7 {
                self.write(&format!("events/{event}/enable"), "0\n");
            }
        }
        self.with_format("raw_syscalls/sys_enter", 901).with_format("raw_syscalls/sys_exit", 902);
        for cpu in 0..cpus {
            self.write(&format!("per_cpu/cpu{cpu}/trace_pipe_raw"), "");
            self.write(&format!("per_cpu/cpu{cpu}/trace"), "");
            let stats = "entries: 1\noverrun: 2\ncommit overrun: 3\nbytes: 4\noldest event ts:  5.500000\n\
                         now ts:    6.250000\ndropped events: 7\nread events: 8\n";
            self.write(&format!("per_cpu/cpu{cpu}/stats"), stats);
        }
        self
    }

    /// Adds an event that is off, and has only the field `value`.
    pub(crate) fn with_format(&self, event: &str, id: u16) -> &Self {
        let name = event.rsplit('/').next().unwrap_or_default();
        let format = format!(
            "name: {name}\nID: {id}\nformat:\n\
             \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
             \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
             \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
             \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
             \tfield:int value;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n"
        );
        self.write(&format!("events/{event}/format"), &format);
        self.write(&format!("events/{event}/enable"), "0\n");
        self
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn recorded(file: &str) -> String {
    String::from_utf8(super::session::recorded(file)).expect("text")
}
