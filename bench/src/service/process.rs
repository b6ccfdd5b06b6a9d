//! Figures of a process, from the kernel.

use std::time::Duration;

/// CPU time of all threads of a process so far, in steps of a nanosecond. Those of threads that
/// ended are missing.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration, String> {
    let folder = format!("/proc/{pid}/task");
    let tasks = std::fs::read_dir(&folder).map_err(|error| format!("{folder}: {error}"))?;
    let mut total = 0;
    for task in tasks {
        let file = task.map_err(|error| format!("{folder}: {error}"))?.path().join("schedstat");
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let ns = text.split(' ').next().and_then(|first| first.parse::<u64>().ok());
        total += ns.ok_or_else(|| format!("{}: '{text}'", file.display()))?;
    }
    Ok(Duration::from_nanos(total))
}

/// CPU time of a process so far, with that of threads that ended, in steps of 10 ms.
pub(crate) fn cpu_time_of_all(pid: u32) -> Result<Duration, String> {
    let file = format!("/proc/{pid}/stat");
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
    // After the name, which may contain anything, utime and stime are the 12th and 13th field.
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: Vec<u64> = fields.skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    let [user, system] = ticks[..] else { return Err(format!("{file}: '{text}'")) };
    Ok(Duration::from_millis((user + system) * 1000 / TICKS_PER_SECOND))
}

/// Ticks per second of the kernel's interface; they do not depend on the kernel's own clock.
const TICKS_PER_SECOND: u64 = 100;

/// Memory of a process, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// Not backed by a file: heap, stacks, buffers.
    pub(crate) anonymous: u64,
    /// Shared memory that it has touched.
    pub(crate) shared: u64,
}

/// Memory that is resident now.
pub(crate) fn memory(pid: u32) -> Result<Memory, String> {
    let status = Status::of(pid)?;
    Ok(Memory { anonymous: status.number("RssAnon")? * 1024, shared: status.number("RssShmem")? * 1024 })
}

/// Resources of an idle process. Memory is in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    /// Code, libraries and heap together.
    pub(crate) resident: u64,
    pub(crate) anonymous: u64,
    /// Resident, but of what several processes have in common (the C library) only its part.
    pub(crate) proportional: u64,
    pub(crate) threads: u64,
    /// How often all of its threads together have gone to sleep.
    pub(crate) switches: u64,
}

/// Reads the current figures.
pub(crate) fn rest(pid: u32) -> Result<Rest, String> {
    let status = Status::of(pid)?;
    let folder = format!("/proc/{pid}/task");
    let mut switches = 0;
    for task in std::fs::read_dir(&folder).map_err(|error| format!("{folder}: {error}"))? {
        let file = task.map_err(|error| format!("{folder}: {error}"))?.path().join("status");
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        switches += Status(text).number("voluntary_ctxt_switches")?;
    }
    let rollup = format!("/proc/{pid}/smaps_rollup");
    let rollup = Status(std::fs::read_to_string(&rollup).map_err(|error| format!("{rollup}: {error}"))?);
    Ok(Rest {
        resident: status.number("VmRSS")? * 1024,
        anonymous: status.number("RssAnon")? * 1024,
        proportional: rollup.number("Pss")? * 1024,
        threads: status.number("Threads")?,
        switches,
    })
}

/// Returns the most memory that a process has had at once, in bytes.
pub(crate) fn peak(pid: u32) -> Result<u64, String> {
    Ok(Status::of(pid)?.number("VmHWM")? * 1024)
}

/// `/proc/PID/status`, or a file like it.
struct Status(String);

impl Status {
    fn of(pid: u32) -> Result<Self, String> {
        let file = format!("/proc/{pid}/status");
        std::fs::read_to_string(&file).map(Self).map_err(|error| format!("{file}: {error}"))
    }

    fn number(&self, name: &str) -> Result<u64, String> {
        let line = self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let number = line.and_then(|rest| rest.split_whitespace().next()).and_then(|number| number.parse().ok());
        number.ok_or_else(|| format!("no {name} in /proc/PID/status"))
    }
}
