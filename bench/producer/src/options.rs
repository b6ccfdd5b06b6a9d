//! The command line.

use esatto_shm::ExhaustedPolicy;

/// The workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Flood,
    Delay,
}

/// When the producer commits full chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Commit {
    Half,
    Chunk,
    Thread,
}

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) mode: Mode,
    pub(crate) producers: usize,
    pub(crate) smb_bytes: u32,
    pub(crate) packet_bytes: usize,
    pub(crate) total_bytes: u64,
    pub(crate) policy: ExhaustedPolicy,
    pub(crate) commit: Commit,
    pub(crate) rounds: usize,
    pub(crate) source: String,
}

impl Options {
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mode = match args.next().as_deref() {
            Some("flood") => Mode::Flood,
            Some("delay") => Mode::Delay,
            other => return Err(format!("'flood' or 'delay', not {other:?}")),
        };
        let mut this = Self {
            mode,
            producers: 1,
            smb_bytes: 0,
            packet_bytes: 512,
            total_bytes: 1 << 30,
            policy: ExhaustedPolicy::StallThenDrop,
            commit: Commit::Half,
            rounds: 1000,
            source: "bench.write".to_owned(),
        };
        while let Some(arg) = args.next() {
            let value = args.next().ok_or_else(|| format!("{arg} needs a value"))?;
            let number = || value.parse::<u32>().map_err(|_| format!("{arg} takes a number, not '{value}'"));
            match arg.as_str() {
                "--producers" => this.producers = number()? as usize,
                "--smb-kb" => this.smb_bytes = number()? * 1024,
                "--packet" => this.packet_bytes = number()? as usize,
                "--mib" => this.total_bytes = u64::from(number()?) << 20,
                "--rounds" => this.rounds = number()? as usize,
                "--source" => this.source = value,
                "--policy" => {
                    this.policy = match value.as_str() {
                        "stall" => ExhaustedPolicy::StallThenDrop,
                        "drop" => ExhaustedPolicy::Drop,
                        _ => return Err(format!("--policy stall|drop, not '{value}'")),
                    }
                }
                "--commit" => {
                    this.commit = match value.as_str() {
                        "half" => Commit::Half,
                        "chunk" => Commit::Chunk,
                        "thread" => Commit::Thread,
                        _ => return Err(format!("--commit half|chunk|thread, not '{value}'")),
                    }
                }
                _ => return Err(format!("unknown option '{arg}'")),
            }
        }
        Ok(this)
    }
}
