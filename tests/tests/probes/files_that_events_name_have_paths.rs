//! Events of the kernel name files by device and inode. `linux.inode_file_map` finds their paths.

use crate::tracefs;
use esatto_tests::Instance;
use esatto_tests::{Harness, Implementation, Skip, skip, wait_until, wire};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

#[test]
fn of_the_page_cache() {
    skip(|| is_found("filemap/mm_filemap_add_to_page_cache"));
}

#[test]
fn of_a_file_system() {
    skip(|| is_found("ext4/ext4_sync_file_enter"));
}

fn is_found(event: &str) -> Result<(), Skip> {
    let _turn = tracefs()?;
    let harness = Harness::new();
    let file_system = std::process::Command::new("stat").args(["-f", "-c", "%T"]).arg(harness.folder()).output();
    let file_system = String::from_utf8_lossy(&file_system.expect("coreutils").stdout).into_owned();
    if event.starts_with("ext4/") && !file_system.starts_with("ext") {
        return Err(Skip(format!("no ext4: {} is {}", harness.folder().display(), file_system.trim())));
    }
    let _service = harness.service(Implementation::Ours);
    let _probes = harness.probes(Implementation::Ours);
    let instance = Instance::new("inodes");
    // To walk through the whole disk takes long.
    let roots: String = mount_points(harness.folder())
        .iter()
        .map(|point| format!("mount_point_mapping {{ mountpoint: {point:?} scan_roots: {:?} }} ", harness.folder()))
        .collect();
    let config = format!(
        "buffers {{ size_kb: 16384 }}
        write_into_file: true file_write_period_ms: 100 flush_period_ms: 100 write_flush_mode: WRITE_FLUSH_DISABLED
        data_sources {{ config {{ name: 'linux.ftrace' ftrace_config {{
          instance_name: '{}' ftrace_events: '{event}'
        }} }} }}
        data_sources {{ config {{ name: 'linux.inode_file_map' inode_file_config {{
          scan_delay_ms: 10 scan_interval_ms: 10 {roots}
        }} }} }}",
        instance.name()
    );
    let mut recording = harness.record(Implementation::Ours, "trace", &config);
    instance.wait_until_on(event);
    let path = harness.path("a-file-of-the-test");
    let mut file = std::fs::File::create(&path).expect("a file");
    file.write_all(&[1; 10_000]).and_then(|()| file.sync_all()).expect("a disk");
    let name = path.as_os_str().as_bytes();
    wait_until("the path is in the file", || {
        let trace = std::fs::read(recording.trace()).unwrap_or_default();
        trace.windows(name.len()).any(|part| part == name).then_some(())
    });
    let trace = std::fs::read(recording.stop()).expect("the trace");

    let metadata = path.metadata().expect("it is there");
    let maps: Vec<&[u8]> = wire::all(&trace, 1).into_iter().flat_map(|packet| wire::all(packet, 4)).collect();
    let is_it = |entry: &&[u8]| wire::int(entry, 1) == metadata.ino() && wire::all(entry, 2).contains(&name);
    let found = maps.iter().find(|map| wire::all(map, 3).iter().any(is_it));
    let map = found.unwrap_or_else(|| panic!("{} maps, none with {}", maps.len(), metadata.ino()));
    assert_eq!(wire::int(map, 1), metadata.dev());
    let points = mount_points(harness.folder());
    let shown: Vec<_> = wire::all(map, 2).into_iter().map(String::from_utf8_lossy).collect();
    assert!(shown.iter().any(|point| points.iter().any(|known| known == point)), "{shown:?} of {points:?}");
    Ok(())
}

/// Mount points of the device of this folder.
fn mount_points(folder: &Path) -> Vec<String> {
    let device = folder.metadata().expect("a folder").dev();
    let device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let table = std::fs::read_to_string("/proc/self/mountinfo").expect("/proc");
    let rows = table.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    rows.filter(|row| row[2] == device).map(|row| row[4].to_owned()).collect()
}
