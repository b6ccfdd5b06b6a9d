//! A disk that does not answer, as a server of NFS that is away: the user learns what a recording
//! waits for, and once the disk answers, the trace is whole.

use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use esatto_tests::fake::{CONSUMER_METHODS, FakeService, first};
use esatto_tests::wire::Proto;
use esatto_tests::workload::Workload;
use esatto_tests::{DEADLINE, Harness, Implementation, Program, Signal, Skip, esatto_bin, skip};

/// Seconds for which the disk hangs, so that a failed test does not leave it so.
const HANGS_S: u32 = 10;

const WORKLOAD: Workload = Workload { threads: 1, rounds: 1_000_000, pause_us: 1000 };

const CONFIG: &str = "buffers { size_kb: 16384 } data_sources { config { name: \"track_event\"
    track_event_config { enabled_categories: \"rendering\" } } }";

/// A file system in a file, until the end of the test.
struct Disk(PathBuf);

impl Disk {
    fn mount(harness: &Harness) -> Result<Self, Skip> {
        let (image, at) = (harness.path("image"), harness.path("disk"));
        let file = std::fs::File::create(&image).expect("a file");
        file.set_len(32 << 20).expect("a sparse file");
        std::fs::create_dir(&at).expect("a new folder");
        let run = |command: &mut Command| match command.output() {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(Skip(format!("no disk in a file: {}", String::from_utf8_lossy(&output.stderr).trim()))),
            Err(error) => Err(Skip(format!("no disk in a file: {error}"))),
        };
        run(Command::new("mkfs.ext4").arg("-q").arg(&image))?;
        run(Command::new("mount").args(["-o", "loop"]).args([&image, &at]))?;
        Ok(Self(at))
    }

    /// Lets it hang for some time.
    fn hang(&self, harness: &Harness) -> Program {
        let status = Command::new("fsfreeze").arg("-f").arg(&self.0).status().expect("fsfreeze is there");
        assert!(status.success());
        let script = format!("sleep {HANGS_S}; fsfreeze -u '{}'", self.0.display());
        harness.start("thaw", Command::new("sh").args(["-c", &script]))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn if_the_command_writes_the_trace() {
    skip(|| {
        let harness = Harness::new();
        let disk = Disk::mount(&harness)?;
        let _service = harness.service(Implementation::Ours);
        let _application = harness.application(Implementation::Ours, WORKLOAD);
        harness.wait_for_data_source("track_event");
        let (config, trace) = (harness.write("config", CONFIG), disk.0.join("trace"));
        let mut command = harness.command(esatto_bin());
        command.arg("record").arg("-c").arg(config).arg("-o").arg(&trace);
        let mut recording = harness.start("record", &mut command);
        harness.wait_for_sessions(1);
        let mut thaw = disk.hang(&harness);
        recording.signal(Signal::INT);
        recording.wait_for_log(&format!("Waiting for the disk of {}: a write has not ended", trace.display()));
        assert!(!recording.log().contains("programs that do not answer"), "{}", recording.log());
        thaw.wait_ok();
        recording.wait_ok();
        let check = harness.command(esatto_bin()).arg("check").arg(&trace).output().expect("it runs");
        assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
        Ok(())
    });
}

/// The time of the disk is not that of the programs: what comes while the command writes is not
/// late.
#[test]
fn but_not_as_programs_that_are_late() {
    skip(|| {
        let harness = Harness::new();
        let disk = Disk::mount(&harness)?;
        let listener = UnixListener::bind(harness.consumer_socket()).expect("a socket");
        let (at, reached) = mpsc::channel();
        let (go, wait) = mpsc::channel();
        thread::spawn(move || {
            let waits = Arc::new(Mutex::new(wait));
            loop {
                let service = FakeService::accept(&listener, &first(CONSUMER_METHODS.len(), &CONSUMER_METHODS));
                let (at, waits) = (at.clone(), Arc::clone(&waits));
                thread::spawn(move || serve(service, &at, &waits));
            }
        });
        let mut command = harness.command(esatto_bin());
        command.arg("record").arg("-o").arg(disk.0.join("trace"));
        let mut recording = harness.start("record", &mut command);
        assert_eq!(reached.recv_timeout(DEADLINE), Ok("second ReadBuffers"));
        recording.signal(Signal::INT);
        assert_eq!(reached.recv_timeout(DEADLINE), Ok("Flush"));
        let mut thaw = disk.hang(&harness);
        go.send(()).expect("the service waits");
        recording.wait_ok();
        thaw.wait_ok();
        assert!(!recording.log().contains("did not deliver"), "{}", recording.log());
        Ok(())
    });
}

/// Plays a service with one event. It keeps its second one back until the command asks for the last
/// events and the test lets it go on.
fn serve(mut service: FakeService, at: &mpsc::Sender<&'static str>, go: &Mutex<mpsc::Receiver<()>>) {
    let packet = Proto::new().int(8, 1).int(10, 2).message(11, &Proto::new().int(9, 3));
    let event = Proto::new().message(2, &Proto::new().bytes(1, &packet.0).int(2, 1));
    let (mut enabled, mut held) = (None, None);
    while let Some(call) = service.call() {
        match call.method {
            "EnableTracing" => enabled = Some(call),
            "DisableTracing" => {
                service.reply(&call, &Proto::new());
                service.reply(&enabled.take().expect("a session"), &Proto::new().int(1, 1));
            }
            "ReadBuffers" if service.calls.iter().filter(|name| **name == "ReadBuffers").count() == 2 => {
                held = Some(call);
                at.send("second ReadBuffers").expect("the test waits");
            }
            "ReadBuffers" => service.reply(&call, &event),
            "Flush" => {
                at.send("Flush").expect("the test waits");
                go.lock().expect("no panic").recv().expect("the test goes on");
                service.reply(&held.take().expect("it is read all the time"), &event);
                service.reply(&call, &Proto::new());
            }
            "ObserveEvents" => {}
            _ => service.reply(&call, &Proto::new()),
        }
    }
}
