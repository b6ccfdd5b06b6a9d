//! [`SysfsPower`], the data source `linux.sysfs_power`: batteries (`docs/spec/probes.md` §16).

use core::time::Duration;
use std::path::{Path, PathBuf};

use esatto::producer::TraceWriter;
use esatto_schema::{BatteryCountersWriter, DataSourceDescriptor, TracePacketWriter};

use crate::clocks::boottime_ns;
use crate::data_source::{Instance, Monotonic, SetupError};
use crate::instances::Source;
use crate::polled_file::{PolledFile, read_once};
use crate::polled_folder::list;
use crate::ticks::Ticks;
use crate::words::{name_text, signed_number_of_file, split_line};

/// Period of the polls.
const PERIOD: Duration = Duration::from_secs(1);
/// Bytes read of a file of sysfs that holds a word: what sysfs has at most.
const WORD_FILE_BYTES: usize = 4096;

/// The data source `linux.sysfs_power`: charge, current and voltage of the machine's batteries.
#[derive(Debug)]
pub(crate) struct SysfsPower {
    folder: PathBuf,
    /// Found by the start.
    batteries: Vec<Battery>,
    ticks: Option<Ticks>,
}

#[derive(Debug)]
struct Battery {
    name: String,
    /// Files of the [`COUNTERS`].
    files: [PolledFile; COUNTERS.len()],
}

/// Name of a file, and the function that writes its number.
type Counter = (&'static str, fn(&mut BatteryCountersWriter<'_>, i64));

/// Files of a battery. Drivers have those that their hardware can tell.
const COUNTERS: [Counter; 6] = [
    ("charge_now", |counters, value| _ = counters.charge_counter_uah(value)),
    #[expect(clippy::cast_precision_loss, reason = "a percentage")]
    ("capacity", |counters, value| _ = counters.capacity_percent(value as f32)),
    ("current_now", |counters, value| _ = counters.current_ua(value)),
    ("current_avg", |counters, value| _ = counters.current_avg_ua(value)),
    ("energy_now", |counters, value| _ = counters.energy_counter_uwh(value)),
    ("voltage_now", |counters, value| _ = counters.voltage_uv(value)),
];

impl SysfsPower {
    /// Makes an instance that reads below the folder `sys`.
    pub(crate) fn new(sys: &Path) -> Self {
        Self { folder: sys.join("class/power_supply"), batteries: Vec::new(), ticks: None }
    }

    fn find_batteries(&mut self) {
        let is_battery = |name: &str| {
            let says = |file, wanted: &[u8]| {
                let text = read_once(&self.folder.join(name).join(file), WORD_FILE_BYTES);
                text.is_ok_and(|text| split_line(&text).0 == wanted)
            };
            says("type", b"Battery") && says("present", b"1")
        };
        let names = list(&self.folder, is_battery).unwrap_or_default();
        let battery = |name: String| {
            let files = COUNTERS.map(|(file, _)| PolledFile::optional(self.folder.join(&name).join(file)));
            Battery { name, files }
        };
        self.batteries = names.into_iter().map(battery).collect();
    }

    fn write(&mut self, now: Monotonic, writer: &mut TraceWriter) {
        let is_named = self.batteries.len() > 1;
        let mut buffer = [0; 64];
        for battery in &mut self.batteries {
            let time_ns = boottime_ns();
            let mut packet = writer.new_packet();
            let mut packet: TracePacketWriter<'_> = packet.typed();
            packet.timestamp(time_ns);
            let mut counters = packet.battery();
            for (file, (_, write)) in battery.files.iter_mut().zip(COUNTERS) {
                if let Some(value) = file.read_short(now, &mut buffer).and_then(signed_number_of_file) {
                    write(&mut counters, value);
                }
            }
            if is_named {
                counters.name(&*name_text(battery.name.as_bytes()));
            }
        }
    }
}

impl Source for SysfsPower {
    fn descriptor() -> DataSourceDescriptor {
        DataSourceDescriptor {
            name: Some("linux.sysfs_power".into()),
            will_notify_on_start: Some(true),
            will_notify_on_stop: Some(true),
            ..DataSourceDescriptor::default()
        }
    }

    fn set_up(_: &Instance) -> Result<Self, SetupError> {
        Ok(Self::new(Path::new("/sys")))
    }

    fn start(&mut self, now: Monotonic, _: &mut TraceWriter) {
        self.find_batteries();
        self.ticks = Some(Ticks::starting(now, PERIOD));
    }

    /// A machine without batteries is not woken up.
    fn deadline(&self) -> Option<Monotonic> {
        self.ticks.as_ref().filter(|_| !self.batteries.is_empty()).map(Ticks::deadline)
    }

    fn tick(&mut self, now: Monotonic, writer: &mut TraceWriter) {
        if self.ticks.as_mut().is_some_and(|ticks| ticks.take(now)) {
            self.write(now, writer);
        }
    }
}

#[cfg(test)]
mod tests {
    use esatto_schema::{BatteryCountersReader, TracePacketReader};

    use super::*;
    use crate::test_folder::TestFolder;
    use crate::test_writer::TestWriter;

    fn battery(folder: &TestFolder, name: &str, files: &[(&str, &str)]) {
        for (file, text) in [("type", "Battery\n"), ("present", "1\n")].iter().chain(files) {
            folder.write(&format!("class/power_supply/{name}/{file}"), text);
        }
    }

    /// Lets a source tick once, and returns what it wrote.
    fn record(folder: &TestFolder) -> Vec<Vec<u8>> {
        let mut source = SysfsPower::new(&folder.path(""));
        let mut test = TestWriter::new();
        let mut writer = test.writer();
        let now = Duration::from_millis(1500);
        source.start(now, &mut writer);
        source.tick(now, &mut writer);
        source.tick(now, &mut writer);
        drop(writer);
        test.packets()
    }

    fn counters(packet: &[u8]) -> BatteryCountersReader<'_> {
        TracePacketReader::new(packet).battery().expect("a battery")
    }

    #[test]
    fn the_average_current_has_a_field_of_its_own() {
        let folder = TestFolder::new();
        battery(
            &folder,
            "BAT0",
            &[
                ("charge_now", "3000000\n"),
                ("capacity", "87\n"),
                ("current_now", "-450000\n"),
                ("current_avg", "-400000\n"),
                ("energy_now", "5\n"),
                ("voltage_now", "12000000\n"),
            ],
        );
        folder.write("class/power_supply/AC/type", "Mains\n");
        let packets = record(&folder);
        let [packet] = &packets[..] else { panic!("{} packets", packets.len()) };
        let battery = counters(packet);
        assert_eq!(battery.current_ua(), Some(-450_000));
        assert_eq!(battery.current_avg_ua(), Some(-400_000));
        assert_eq!((battery.charge_counter_uah(), battery.energy_counter_uwh()), (Some(3_000_000), Some(5)));
        assert_eq!((battery.capacity_percent(), battery.voltage_uv()), (Some(87.0), Some(12_000_000)));
        assert_eq!(battery.name(), None, "there is only one");
    }

    #[test]
    fn several_batteries_have_names() {
        let folder = TestFolder::new();
        battery(&folder, "BAT1", &[("capacity", "1\n")]);
        battery(&folder, "BAT0", &[("capacity", "x\n")]);
        folder.write("class/power_supply/BAT2/type", "Battery\n");
        folder.write("class/power_supply/BAT2/present", "0\n");
        let packets = record(&folder);
        let found = packets.iter().map(|packet| counters(packet));
        let found: Vec<_> = found.map(|battery| (battery.name(), battery.capacity_percent())).collect();
        assert_eq!(found, [(Some(&b"BAT0"[..]), None), (Some(b"BAT1"), Some(1.0))]);
    }

    #[test]
    fn a_machine_without_batteries_is_not_woken_up() {
        let mut source = SysfsPower::new(Path::new("/does/not/exist"));
        let mut writer = TraceWriter::null();
        source.start(Duration::from_secs(1), &mut writer);
        assert_eq!(source.deadline(), None);
    }
}
