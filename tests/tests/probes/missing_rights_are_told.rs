//! Without a capability the program says what it does not record and which capability is missing.
//! With the capability it records that.

use crate::tracefs;
use esatto_tests::{Harness, Implementation, Program, Skip, beside_this_test, skip, wait_until};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

/// Options of setpriv for a user id without a user.
const ALICE: &[&str] = &["--reuid=4242001", "--regid=4242001", "--clear-groups"];
/// The capabilities that the messages name.
const GRANTED: &[&str] =
    &["--inh-caps=+sys_ptrace,+syslog,+dac_read_search", "--ambient-caps=+sys_ptrace,+syslog,+dac_read_search"];

const FOREIGN: &str = "linux.process_stats cannot record file descriptors and smaps of other users' processes: \
                       CAP_SYS_PTRACE is missing";
const SYMBOLS: &str = "linux.ftrace cannot record names of kernel functions";
const SLABS: &str = "linux.sys_stats cannot record slabs";
const TRACEFS: &str = "linux.ftrace cannot record scheduling";

const CONFIG: &str = r#"
buffers { size_kb: 65536 }
duration_ms: 500
data_sources { config { name: "linux.process_stats" process_stats_config {
  scan_all_processes_on_start: true proc_stats_poll_ms: 200 resolve_process_fds: true
} } }
data_sources { config { name: "linux.sys_stats" sys_stats_config { slab_period_ms: 100 } } }
"#;

/// A service that all users can reach, and probes with the rights that options of setpriv leave.
struct Restricted {
    probes: Program,
    options: Vec<&'static str>,
    harness: Harness,
    _service: Program,
}

impl Restricted {
    fn start(options: &[&[&'static str]]) -> Result<Self, Skip> {
        let harness = Harness::new();
        let service = harness.service(Implementation::Ours);
        for path in [harness.folder(), &harness.producer_socket()] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).expect("a mode");
        }
        let options = options.concat();
        let mut command = harness.command("setpriv");
        command.args(&options).arg(beside_this_test("traced_probes"));
        let mut probes = harness.start("traced_probes", &mut command);
        wait_until("the probes are connected or cannot be", || {
            let log = probes.log();
            (log.contains("Connected to the tracing service") || !probes.is_running()).then_some(())
        });
        if probes.log().contains("setpriv: ") {
            return Err(Skip(format!("no right to set rights: {}", probes.log().trim())));
        }
        Ok(Self { probes, options, harness, _service: service })
    }

    fn told(&self, text: &str) -> bool {
        self.probes.log().contains(text)
    }

    /// True if the kernel hides addresses from a program with these rights.
    fn symbols_are_hidden(&self) -> bool {
        let head = Command::new("setpriv").args(&self.options).args(["head", "-c", "16", "/proc/kallsyms"]).output();
        head.expect("it ran before").stdout == b"0000000000000000"
    }

    /// Records, and returns which of these texts the trace has.
    fn records(&self, texts: &[&str]) -> Vec<bool> {
        self.harness.wait_for_data_source("linux.process_stats");
        let trace = self.harness.record(Implementation::Ours, "trace", CONFIG).finish();
        let trace = std::fs::read(trace).expect("the trace");
        let has = |text: &&str| trace.windows(text.len()).any(|part| part == text.as_bytes());
        texts.iter().map(has).collect()
    }
}

fn names_kernel_functions(it: &Restricted) {
    assert_eq!(it.told(SYMBOLS), it.symbols_are_hidden(), "{}", it.probes.log());
}

#[test]
fn root_misses_only_what_was_taken() {
    skip(|| {
        let _turn = tracefs()?;
        let it = Restricted::start(&[&["--bounding-set=-sys_ptrace", "--inh-caps=-all"]])?;
        assert!(it.told(FOREIGN) && !it.told(SLABS), "{}", it.probes.log());
        names_kernel_functions(&it);
        let it = Restricted::start(&[&["--bounding-set=-syslog", "--inh-caps=-all"]])?;
        assert!(!it.told(FOREIGN) && !it.told(SLABS), "{}", it.probes.log());
        names_kernel_functions(&it);
        // Root owns the files, and CAP_PERFMON has no effect.
        let it = Restricted::start(&[&["--bounding-set=-dac_override,-dac_read_search,-perfmon", "--inh-caps=-all"]])?;
        assert!(![FOREIGN, SLABS, TRACEFS].iter().any(|text| it.told(text)), "{}", it.probes.log());
        names_kernel_functions(&it);
        Ok(())
    });
}

#[test]
fn a_user_gets_what_the_named_capabilities_grant() {
    skip(|| {
        let _turn = tracefs()?;
        let mine = Harness::new();
        let open = mine.write("a-file-that-root-has-open", "");
        let _open = std::fs::File::open(open).expect("it was written");
        let texts = ["a-file-that-root-has-open", "kmalloc-64"];

        let it = Restricted::start(&[ALICE])?;
        assert!(it.told(FOREIGN) && it.told(SLABS), "{}", it.probes.log());
        names_kernel_functions(&it);
        assert_eq!(it.records(&texts), [false, false]);

        let it = Restricted::start(&[ALICE, GRANTED])?;
        assert!(!it.told(FOREIGN) && !it.told(SLABS), "{}", it.probes.log());
        names_kernel_functions(&it);
        assert_eq!(it.records(&texts), [true, true]);
        // No capability of these writes files of root.
        assert!(it.told(TRACEFS) && it.told("chown -R $USER /sys/kernel/tracing"), "{}", it.probes.log());
        Ok(())
    });
}
