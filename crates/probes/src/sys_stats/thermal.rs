//! `SysStats.thermal_zone`: `/sys/class/thermal/thermal_zone*/{temp,type}`.

use std::path::Path;

use esatto_schema::SysStatsWriter;

use super::group::Group;
use crate::data_source::Monotonic;
use crate::polled_file::{PolledFile, read_once};
use crate::polled_folder::PolledFolder;
use crate::words::{name_text, signed_number_of_file, split_line};

/// Thousandths of a degree below which a value is none: absolute zero. Drivers without a reading
/// return such numbers.
const ABSOLUTE_ZERO: i64 = -273_150;
/// Bytes read of a file that holds a name: what sysfs has at most.
const NAME_FILE_BYTES: usize = 4096;

/// Temperature of each zone of the machine.
#[derive(Debug)]
pub(super) struct Temperatures {
    folder: PolledFolder,
    /// One for each name of the folder.
    zones: Vec<Zone>,
}

#[derive(Debug)]
struct Zone {
    kind: Option<String>,
    file: PolledFile,
    /// In degrees Celsius.
    temperature: Option<u64>,
}

impl Temperatures {
    pub(super) fn new(sys: &Path) -> Self {
        let is_zone = |name: &str| name.starts_with("thermal_zone");
        let folder = PolledFolder::new(sys.join("class/thermal"), is_zone, "thermal_zone");
        Self { folder, zones: Vec::new() }
    }
}

impl Group for Temperatures {
    fn read(&mut self, now: Monotonic) -> bool {
        if self.folder.refresh(now) {
            let zone = |name| {
                let folder = self.folder.path().join(name);
                let kind = read_once(&folder.join("type"), NAME_FILE_BYTES).ok();
                let kind = kind.map(|text| name_text(split_line(&text).0).into_owned());
                let file = PolledFile::new(folder.join("temp"), "temperature of this zone");
                Zone { kind, file, temperature: None }
            };
            self.zones = self.folder.names().iter().map(zone).collect();
        }
        let mut buffer = [0; 64];
        for zone in &mut self.zones {
            zone.temperature = zone.file.read_short(now, &mut buffer).and_then(parse);
        }
        !self.zones.is_empty()
    }

    fn write(&mut self, stats: &mut SysStatsWriter<'_>) {
        for (name, zone) in self.folder.names().iter().zip(&self.zones) {
            let mut writer = stats.thermal_zone();
            writer.name(&*name_text(name.as_bytes()));
            if let Some(temperature) = zone.temperature {
                writer.temp(temperature);
            }
            if let Some(kind) = &zone.kind {
                writer.r#type(kind);
            }
        }
    }
}

/// Parses the file `temp`, which has thousandths of a degree. The field of the trace cannot be
/// negative: frost is 0 degrees.
pub(crate) fn parse(text: &[u8]) -> Option<u64> {
    let temperature = signed_number_of_file(text).filter(|&value| value >= ABSOLUTE_ZERO)?;
    Some(u64::try_from(temperature / 1000).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperatures_below_zero_are_zero_and_impossible_ones_are_none() {
        assert_eq!(parse(b"45600\n"), Some(45));
        assert_eq!(parse(b"-5000\n"), Some(0));
        assert_eq!(parse(b"-999\n"), Some(0));
        assert_eq!(parse(b"-274000\n"), None);
        assert_eq!(parse(b"\n"), None);
    }
}
