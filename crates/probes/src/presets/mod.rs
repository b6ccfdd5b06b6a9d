//! [`Preset`]s: configs for common questions, in protobuf's text format.

/// A `TraceConfig` in text format.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Preset {
    /// Name on the command line.
    pub name: &'static str,
    /// Its content, in a few words.
    pub about: &'static str,
    /// The config.
    pub text: &'static str,
}

/// Name of the preset that is used if the user names none.
pub const DEFAULT: &str = "default";

/// All presets.
pub const ALL: &[Preset] = &[
    Preset {
        name: DEFAULT,
        about: "Scheduling, frequencies, processes and their memory, system counters, all track events",
        text: include_str!("default.cfg"),
    },
    Preset {
        name: "sched",
        about: "Scheduling in detail: states and wake-ups of threads, interrupts, frequencies, system calls",
        text: include_str!("sched.cfg"),
    },
    Preset {
        name: "memory",
        about: "Memory of the machine and of each process, reclaim, page faults",
        text: include_str!("memory.cfg"),
    },
    Preset {
        name: "io",
        about: "Disks and file systems: requests, waits, writeback, pressure",
        text: include_str!("io.cfg"),
    },
    Preset {
        name: "long",
        about: "Hours from the boot on: few events, slow counters, the journal; written into the file as it comes",
        text: include_str!("long.cfg"),
    },
];

/// Returns the preset of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Preset> {
    ALL.iter().find(|preset| preset.name == name)
}
