//! `SysStats.cpuidle_state`: `/sys/devices/system/cpu/cpuN/cpuidle/stateM/{name,time}`.

use std::path::Path;

use esatto_schema::SysStatsWriter;

use super::group::Group;
use crate::data_source::Monotonic;
use crate::polled_file::{PolledFile, log_unreadable, read_once};
use crate::polled_folder::{PolledFolder, list, numbered};
use crate::words::{name_text, number_of_file, split_line};

/// Bytes read of a file that holds a name: what sysfs has at most.
const NAME_FILE_BYTES: usize = 4096;

/// Time that each CPU has spent in each of its idle states.
#[derive(Debug)]
pub(super) struct IdleStates {
    folder: PolledFolder,
    states: Vec<IdleState>,
    is_logged: bool,
}

/// An idle state of a CPU.
#[derive(Debug)]
struct IdleState {
    cpu: u32,
    name: String,
    time: PolledFile,
    duration_us: Option<u64>,
}

impl IdleStates {
    pub(super) fn new(sys: &Path) -> Self {
        let is_cpu = |name: &str| numbered(name, "cpu").is_some();
        let folder = PolledFolder::new(sys.join("devices/system/cpu"), is_cpu, "cpuidle_state");
        Self { folder, states: Vec::new(), is_logged: false }
    }

    /// Finds the states of all CPUs.
    fn find(&mut self) {
        self.states.clear();
        for name in self.folder.names() {
            let Some(cpu) = numbered(name, "cpu") else { continue };
            let folder = self.folder.path().join(name).join("cpuidle");
            let states = list(&folder, |name| numbered(name, "state").is_some());
            for state in states.unwrap_or_default() {
                let Ok(text) = read_once(&folder.join(&state).join("name"), NAME_FILE_BYTES) else { continue };
                let name = name_text(split_line(&text).0).into_owned();
                let time = PolledFile::optional(folder.join(state).join("time"));
                self.states.push(IdleState { cpu, name, time, duration_us: None });
            }
        }
        if self.states.is_empty() && !self.is_logged {
            self.is_logged = true;
            log_unreadable(&self.folder.path().join("cpu*/cpuidle"), rustix::io::Errno::NOENT, "cpuidle_state");
        }
    }
}

impl Group for IdleStates {
    fn read(&mut self, now: Monotonic) -> bool {
        if self.folder.refresh(now) {
            self.find();
        }
        let mut buffer = [0; 64];
        for state in &mut self.states {
            state.duration_us = state.time.read_short(now, &mut buffer).and_then(number_of_file);
        }
        !self.states.is_empty()
    }

    fn write(&mut self, stats: &mut SysStatsWriter<'_>) {
        for states in self.states.chunk_by(|a, b| a.cpu == b.cpu) {
            let mut cpu = stats.cpuidle_state();
            cpu.cpu_id(states[0].cpu);
            for state in states {
                if let Some(duration_us) = state.duration_us {
                    cpu.cpuidle_state_entry().state(&state.name).duration_us(duration_us);
                }
            }
        }
    }
}
