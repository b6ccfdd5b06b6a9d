//! Tests of the content and the name that the file of a recording has at each step.

use super::*;
use rustix::fs::Mode;

#[test]
fn each_packet_gets_its_tag_and_minimal_length() {
    let dir = crate::private_service::Folder::create().unwrap();
    let path = dir.path().join("trace");
    let mut output = Output::create(&path).unwrap();
    output.packet(&[8, 1]).unwrap();
    output.packet(&[7; 200]).unwrap();
    assert_eq!((output.packets(), output.bytes()), (2, 4 + 203));
    output.flush().unwrap();
    let mut expected = vec![0x0a, 2, 8, 1, 0x0a, 0xc8, 0x01];
    expected.extend([7; 200]);
    assert_eq!(std::fs::read(&path).unwrap(), expected);
}

#[test]
fn a_full_disk_is_reported_once_with_the_written_bytes() {
    let mut output = Output::create(Path::new("/dev/full")).unwrap();
    output.packet(&[8, 1]).unwrap();
    let failure = output.flush().unwrap_err().to_string();
    assert!(failure.contains("/dev/full") && failure.contains("nothing is kept: make room"), "{failure}");
    output.packet(&[8, 1]).unwrap();
    output.flush().unwrap();
    assert_eq!((output.packets(), output.bytes(), output.failed), (0, 0, true));
}

fn folder_with(content: &[u8]) -> (crate::private_service::Folder, PathBuf) {
    let dir = crate::private_service::Folder::create().unwrap();
    let path = dir.path().join("trace");
    std::fs::write(&path, content).unwrap();
    (dir, path)
}

#[test]
fn a_file_keeps_its_content_until_the_first_packet_is_written() {
    let (_dir, path) = folder_with(b"old");
    drop(Output::create(&path).unwrap());
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    let mut output = Output::create(&path).unwrap();
    output.packet(&[8, 1]).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    output.flush().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), [0x0a, 2, 8, 1]);
}

#[test]
fn a_new_file_without_a_trace_is_removed_and_an_old_empty_one_stays() {
    let (dir, path) = folder_with(b"");
    drop(Output::create(&path).unwrap());
    assert!(path.exists());
    let new = dir.path().join("new");
    drop(Output::create(&new).unwrap());
    assert!(!new.exists());
    Output::create(&new).unwrap().finish().unwrap();
    assert!(new.exists());
}

#[test]
fn a_new_file_appears_with_its_first_packet() {
    let (dir, _) = folder_with(b"");
    let (new, link) = (dir.path().join("new"), dir.path().join("link"));
    std::os::unix::fs::symlink("new", &link).unwrap();
    let mut output = Output::create(&link).unwrap();
    output.packet(&[8, 1]).unwrap();
    assert!(!new.exists() && link.symlink_metadata().is_ok());
    output.flush().unwrap();
    assert_eq!(std::fs::read(&new).unwrap(), [0x0a, 2, 8, 1]);
    assert_eq!(output.final_bytes(false), Some(4));
}

#[test]
fn a_new_file_for_the_service_appears_with_its_content() {
    let (dir, _) = folder_with(b"");
    let new = dir.path().join("new");
    let mut output = Output::create(&new).unwrap();
    output.lend().unwrap();
    output.started().unwrap();
    output.show_content().unwrap();
    assert!(!new.exists());
    (&output.file).write_all(&[0x0a, 0]).unwrap();
    output.show_content().unwrap();
    assert_eq!(std::fs::read(&new).unwrap(), [0x0a, 0]);
    output.finish().unwrap();
    assert_eq!(output.final_bytes(true), Some(2));
}

#[test]
fn an_empty_file_keeps_what_the_service_writes() {
    let (dir, path) = folder_with(b"");
    let mut output = Output::create(&path).unwrap();
    output.lend().unwrap();
    output.started().unwrap();
    (&output.file).write_all(&[0x0a, 0]).unwrap();
    let moved = dir.path().join("moved");
    std::fs::rename(&path, &moved).unwrap();
    let failure = output.finish().unwrap_err().to_string();
    assert!(failure.contains("the trace is in ") && failure.contains("moved"), "{failure}");
    drop(output);
    assert_eq!(std::fs::read(&moved).unwrap(), [0x0a, 0]);
}

#[test]
fn a_default_name_that_was_taken_meanwhile_gets_a_number() {
    let (dir, _) = folder_with(b"");
    let path = dir.path().join("x-20261123-092632.pftrace");
    let mut output = Output::create(&path).unwrap();
    output.is_default_name = true;
    std::fs::write(&path, "of another recording").unwrap();
    output.packet(&[8, 1]).unwrap();
    output.flush().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"of another recording");
    assert_eq!(std::fs::read(output.name()).unwrap(), [0x0a, 2, 8, 1]);
    assert_ne!(output.name(), path);
}

#[test]
fn nothing_that_appears_under_the_name_is_opened() {
    type Place = fn(&Path);
    let places: [Place; 4] = [
        |path| std::fs::write(path, "of another user").unwrap(),
        |path| std::os::unix::fs::symlink("victim", path).unwrap(),
        |path| std::os::unix::fs::symlink("missing", path).unwrap(),
        // To open it would wait for a reader.
        |path| rustix::fs::mknodat(CWD, path, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap(),
    ];
    for (place, is_lent) in places.into_iter().flat_map(|place| [(place, false), (place, true)]) {
        let (dir, _) = folder_with(b"");
        let (path, victim) = (dir.path().join("new.trace"), dir.path().join("victim"));
        std::fs::write(&victim, "content").unwrap();
        let mut output = Output::create(&path).unwrap();
        place(&path);
        if is_lent {
            output.lend().unwrap();
            (&output.file).write_all(&[0x0a, 2, 8, 1]).unwrap();
        } else {
            output.packet(&[8, 1]).unwrap();
        }
        let failure = output.finish().unwrap_err().to_string();
        assert!(failure.contains("another program has created it") && failure.contains("new-2.trace"), "{failure}");
        drop(output);
        assert_eq!(std::fs::read(dir.path().join("new-2.trace")).unwrap(), [0x0a, 2, 8, 1]);
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "content");
        assert!(path.symlink_metadata().is_ok() && !dir.path().join("missing").exists());
    }
}

#[test]
fn a_name_that_is_taken_is_not_for_a_new_file() {
    let (dir, path) = folder_with(b"old");
    let link = dir.path().join("link");
    std::os::unix::fs::symlink("missing", &link).unwrap();
    assert!(Output::create_new(&path).unwrap().is_none() && Output::create_new(&link).unwrap().is_none());
}

#[test]
fn links_still_lead_to_the_file() {
    let (dir, path) = folder_with(b"old");
    let (hard, soft) = (dir.path().join("hard"), dir.path().join("soft"));
    std::fs::hard_link(&path, &hard).unwrap();
    std::os::unix::fs::symlink("trace", &soft).unwrap();
    let mut output = Output::create(&soft).unwrap();
    output.packet(&[8, 1]).unwrap();
    drop(output);
    assert_eq!(std::fs::read(&hard).unwrap(), [0x0a, 2, 8, 1]);
}

#[test]
fn a_service_gets_a_new_file_that_replaces_the_old_one_once_the_session_runs() {
    use std::os::unix::fs::PermissionsExt as _;
    let (dir, path) = folder_with(b"old");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let mut output = Output::create(&path).unwrap();
    output.lend().unwrap();
    (&output.file).write_all(&[0x0a, 0]).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    drop(output);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no other file is left behind");

    let mut output = Output::create(&path).unwrap();
    output.lend().unwrap();
    (&output.file).write_all(&[0x0a, 0]).unwrap();
    output.started().unwrap();
    assert_eq!((std::fs::read(&path).unwrap(), output.file_bytes()), (vec![0x0a, 0], 2));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    drop(output);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}
