//! Whole packets of the data source, from a machine in a temporary folder.

use core::time::Duration;
use std::path::Path;

use esatto::producer::TraceWriter;
use esatto_schema::TracePacketReader;

use super::*;
use crate::test_folder::TestFolder;
use crate::test_writer::TestWriter;

fn record(source: &mut SystemInfo) -> Vec<Vec<u8>> {
    let mut test = TestWriter::new();
    let mut writer = test.writer();
    source.start(Duration::from_secs(1), &mut writer);
    test.packets()
}

/// Name, frequencies and capacity of a CPU.
type Cpu = (String, Vec<u32>, Option<u32>);

fn cpus(packet: &[u8]) -> Vec<Cpu> {
    let packet = TracePacketReader::new(packet);
    assert!(packet.timestamp().is_some());
    let info = packet.cpu_info().expect("cpu_info");
    let cpus = info.cpus().map(|cpu| {
        let name = String::from_utf8_lossy(cpu.processor().expect("a name")).into_owned();
        (name, cpu.frequencies().collect(), cpu.capacity())
    });
    cpus.collect()
}

#[test]
fn frequencies_are_ascending_and_capacities_are_read() {
    let folder = TestFolder::new();
    folder.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Fast\n\nprocessor\t: 1\nmodel name\t: Slow\n");
    let cpu = "sys/devices/system/cpu/cpu0";
    folder.write(&format!("{cpu}/cpufreq/scaling_available_frequencies"), "300000 200000 100000 \n");
    folder.write(&format!("{cpu}/cpufreq/scaling_boost_frequencies"), "300000 400000\n");
    folder.write(&format!("{cpu}/cpu_capacity"), "1024\n");
    let packets = record(&mut SystemInfo::new(false, &folder.path("proc"), &folder.path("sys")));
    assert_eq!(packets.len(), 1);
    let frequencies = vec![100_000, 200_000, 300_000, 400_000];
    assert_eq!(cpus(&packets[0]), [("Fast".into(), frequencies, Some(1024)), ("Slow".into(), vec![], None)]);
}

#[test]
fn a_cpu_that_is_offline_keeps_its_place() {
    let folder = TestFolder::new();
    folder.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: A\n\nprocessor\t: 2\nmodel name\t: B\n");
    for cpu in 0..4 {
        folder.write(&format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity"), format!("{}\n", cpu + 500));
    }
    let packets = record(&mut SystemInfo::new(false, &folder.path("proc"), &folder.path("sys")));
    let cpu = |name: &str, capacity| (name.to_owned(), vec![], Some(capacity));
    assert_eq!(cpus(&packets[0]), [cpu("A", 500), cpu("unknown", 501), cpu("B", 502), cpu("unknown", 503)]);
}

#[test]
fn names_of_interrupts_are_written_if_wanted() {
    let folder = TestFolder::new();
    folder.write("proc/cpuinfo", "processor\t: 0\n");
    folder.write("proc/interrupts", "  CPU0\n 24:  1  IO-APIC   5-edge  ACPI:Ged\n");
    let packets = record(&mut SystemInfo::new(true, &folder.path("proc"), &folder.path("sys")));
    let info = TracePacketReader::new(&packets[1]).interrupt_info().expect("interrupt_info");
    let names: Vec<_> = info.irq_mapping().map(|irq| (irq.irq_id(), irq.name())).collect();
    assert_eq!(names, [(Some(24), Some(&b"ACPI:Ged"[..]))]);
}

#[test]
fn a_machine_without_proc_and_sys_has_an_empty_packet() {
    let nowhere = Path::new("/does/not/exist");
    let packets = record(&mut SystemInfo::new(true, nowhere, nowhere));
    assert_eq!(cpus(&packets[0]), []);
    SystemInfo::new(true, nowhere, nowhere).start(Duration::ZERO, &mut TraceWriter::null());
}
