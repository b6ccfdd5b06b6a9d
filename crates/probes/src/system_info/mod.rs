//! [`SystemInfo`], the data source `linux.system_info`: what does not change while the machine
//! records (`docs/spec/probes.md` §15).

mod cpuinfo;
mod fuzz;
mod interrupts;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use esatto::producer::TraceWriter;
use esatto_schema::cpu_info::CpuWriter;
use esatto_schema::{DataSourceDescriptor, TracePacketWriter};

use self::cpuinfo::{ArmIdentifier, Processor, parse as parse_cpuinfo};
pub use self::fuzz::fuzz;
use self::interrupts::parse as parse_interrupts;
use crate::clocks::boottime_ns;
use crate::data_source::{Instance, Monotonic, SetupError};
use crate::instances::Source;
use crate::polled_file::{log_unreadable, read_once};
use crate::polled_folder::{list, numbered};
use crate::words::{Words, name_text, number_of_file, split_line};

/// Bytes read of `/proc/cpuinfo` and `/proc/interrupts`, once per session: what a machine with 1024
/// CPUs and 2048 interrupts has.
const MAX_INFO_BYTES: usize = 32 << 20;
/// Bytes read of a file of sysfs: what it has at most.
const SYSFS_FILE_BYTES: usize = 4096;
/// CPUs that are written: the most that Linux can be built for.
const MAX_CPUS: u32 = 8192;

/// The data source `linux.system_info`: one packet about the CPUs, and one about the names of the
/// interrupts.
#[derive(Debug)]
pub(crate) struct SystemInfo {
    proc: PathBuf,
    cpus: PathBuf,
    has_irq_names: bool,
}

impl SystemInfo {
    /// Makes an instance that reads below the folders `proc` and `sys`.
    pub(crate) fn new(has_irq_names: bool, proc: &Path, sys: &Path) -> Self {
        Self { proc: proc.into(), cpus: sys.join("devices/system/cpu"), has_irq_names }
    }

    fn read(&self, name: &str, missing: &str) -> Vec<u8> {
        let path = self.proc.join(name);
        read_once(&path, MAX_INFO_BYTES).unwrap_or_else(|error| {
            log_unreadable(&path, error, missing);
            Vec::new()
        })
    }

    fn write_cpus(&self, writer: &mut TraceWriter) {
        let time_ns = boottime_ns();
        let text = self.read("cpuinfo", "cpu_info.processor");
        let mut processors = parse_cpuinfo(&text);
        processors.sort_by_key(|processor| processor.number);
        let names = list(&self.cpus, |name| numbered(name, "cpu").is_some()).unwrap_or_default();
        let known = names.iter().filter_map(|name| numbered(name, "cpu"));
        let last = processors.iter().map(|processor| processor.number).chain(known).filter(|&cpu| cpu < MAX_CPUS).max();
        let mut packet = writer.new_packet();
        let mut packet: TracePacketWriter<'_> = packet.typed();
        packet.timestamp(time_ns);
        let mut info = packet.cpu_info();
        for cpu in 0..last.map_or(0, |last| last + 1) {
            let processor = processors.binary_search_by_key(&cpu, |processor| processor.number).ok();
            self.write_cpu(cpu, processor.map(|at| &processors[at]), info.cpus());
        }
    }

    /// Writes a CPU. One that is offline has no `processor`, but its place: readers count CPUs.
    fn write_cpu(&self, cpu: u32, processor: Option<&Processor<'_>>, mut writer: CpuWriter<'_>) {
        let name = processor.and_then(|processor| processor.name);
        writer.processor(&*name_text(name.unwrap_or(b"unknown")));
        for khz in self.frequencies(cpu) {
            writer.frequencies(khz);
        }
        let capacity = read_once(&self.cpus.join(format!("cpu{cpu}/cpu_capacity")), SYSFS_FILE_BYTES);
        if let Some(capacity) = capacity.ok().and_then(|text| u32::try_from(number_of_file(&text)?).ok()) {
            writer.capacity(capacity);
        }
        let Some(processor) = processor else { return };
        if let ArmIdentifier {
            implementer: Some(implementer),
            architecture: Some(architecture),
            variant: Some(variant),
            part: Some(part),
            revision: Some(revision),
        } = processor.arm
        {
            let mut arm = writer.arm_identifier();
            arm.implementer(implementer).architecture(architecture).variant(variant).part(part).revision(revision);
        }
        if processor.features != 0 {
            writer.features(processor.features);
        }
    }

    /// Returns the frequencies that a CPU can have, in kHz and ascending.
    fn frequencies(&self, cpu: u32) -> Vec<u32> {
        let mut frequencies = Vec::new();
        for name in ["scaling_available_frequencies", "scaling_boost_frequencies"] {
            let path = self.cpus.join(format!("cpu{cpu}/cpufreq/{name}"));
            let Ok(text) = read_once(&path, SYSFS_FILE_BYTES) else { continue };
            let mut words = Words::new(split_line(&text).0);
            while let Some(word) = words.word() {
                frequencies.extend(Words::new(word).number_u32());
            }
        }
        frequencies.sort_unstable();
        frequencies.dedup();
        frequencies
    }

    fn write_interrupts(&self, writer: &mut TraceWriter) {
        let time_ns = boottime_ns();
        let text = self.read("interrupts", "interrupt_info");
        let mut packet = writer.new_packet();
        let mut packet: TracePacketWriter<'_> = packet.typed();
        packet.timestamp(time_ns);
        let mut info = packet.interrupt_info();
        parse_interrupts(&text, |number, name| {
            info.irq_mapping().irq_id(number).name(&*name_text(name));
        });
    }
}

impl Source for SystemInfo {
    fn descriptor() -> DataSourceDescriptor {
        DataSourceDescriptor {
            name: Some("linux.system_info".into()),
            will_notify_on_start: Some(true),
            will_notify_on_stop: Some(true),
            ..DataSourceDescriptor::default()
        }
    }

    fn set_up(instance: &Instance) -> Result<Self, SetupError> {
        let config = instance.config().system_info_config();
        let has_irq_names = config.and_then(|config| config.irq_names()).unwrap_or(false);
        Ok(Self::new(has_irq_names, Path::new("/proc"), Path::new("/sys")))
    }

    fn start(&mut self, _: Monotonic, writer: &mut TraceWriter) {
        self.write_cpus(writer);
        if self.has_irq_names {
            self.write_interrupts(writer);
        }
        writer.flush();
    }
}
