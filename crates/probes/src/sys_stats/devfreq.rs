//! `SysStats.devfreq`: `/sys/class/devfreq/*/cur_freq`, in the device's own unit (most often Hz).

use std::path::Path;

use esatto_schema::SysStatsWriter;

use super::group::Group;
use crate::data_source::Monotonic;
use crate::polled_file::PolledFile;
use crate::polled_folder::PolledFolder;
use crate::words::{name_text, number_of_file};

/// Frequency of each device that scales it.
#[derive(Debug)]
pub(super) struct DeviceFrequencies {
    folder: PolledFolder,
    /// One for each name of the folder: the file, and its value if it was readable.
    devices: Vec<(PolledFile, Option<u64>)>,
}

impl DeviceFrequencies {
    pub(super) fn new(sys: &Path) -> Self {
        let folder = PolledFolder::new(sys.join("class/devfreq"), |_| true, "devfreq");
        Self { folder, devices: Vec::new() }
    }
}

impl Group for DeviceFrequencies {
    fn read(&mut self, now: Monotonic) -> bool {
        if self.folder.refresh(now) {
            let file = |name| PolledFile::new(self.folder.path().join(name).join("cur_freq"), "devfreq");
            self.devices = self.folder.names().iter().map(|name| (file(name), None)).collect();
        }
        let mut buffer = [0; 64];
        for (file, value) in &mut self.devices {
            *value = file.read_short(now, &mut buffer).and_then(number_of_file);
        }
        self.devices.iter().any(|(_, value)| value.is_some())
    }

    fn write(&mut self, stats: &mut SysStatsWriter<'_>) {
        for (name, (_, value)) in self.folder.names().iter().zip(&self.devices) {
            if let Some(value) = *value {
                stats.devfreq().key(&*name_text(name.as_bytes())).value(value);
            }
        }
    }
}
