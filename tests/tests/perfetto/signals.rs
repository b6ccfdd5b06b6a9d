//! §9 and §10: signals, timeouts and processes in the background.

use crate::rows::output_of;
use esatto_tests::{Harness, Implementation, Signal, Skip, wait_until};
use rustix::process::{Pid, kill_process};

mod sigint_saves_the_trace {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        for signal in [Signal::INT, Signal::TERM] {
            let harness = Harness::with_perfetto(client);
            let _service = harness.service(service);
            let mut program = harness.start("perfetto", &mut harness.perfetto(&["-t", "1h", "-o", "t"]));
            harness.wait_for_sessions(1);
            program.signal(signal);
            program.wait_ok();
            assert!(program.log().contains("SIGINT/SIGTERM received: disabling tracing."), "{}", program.log());
            assert!(std::fs::metadata(harness.path("t")).expect("the trace").len() > 0);
        }
        Ok(())
    }
    esatto_tests::for_each_client!(scenario);
}

/// Perfetto's command dies of it, and the session with it.
#[test]
fn sighup_saves_the_trace_too() {
    let harness = Harness::with_perfetto(Implementation::Ours);
    let _service = harness.service(Implementation::Ours);
    let mut program = harness.start("perfetto", &mut harness.perfetto(&["-t", "1h", "-o", "t"]));
    harness.wait_for_sessions(1);
    program.signal(Signal::HUP);
    program.wait_ok();
    assert!(std::fs::metadata(harness.path("t")).expect("the trace").len() > 0);
}

mod background_prints_a_pid_that_can_be_terminated {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        let harness = Harness::with_perfetto(client);
        let _service = harness.service(service);
        let output = output_of(&mut harness.perfetto(&["-d", "-t", "1h", "-o", "t"]), "");
        assert!(output.status.success(), "{output:?}");
        let pid: i32 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a pid");
        harness.wait_for_sessions(1);
        let folder = std::fs::read_link(format!("/proc/{pid}/cwd")).expect("it runs");
        assert_eq!(folder.to_str(), Some("/"));
        for fd in 0..3 {
            let file = std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).expect("it runs");
            assert_eq!(file.to_str(), Some("/dev/null"), "{fd}");
        }
        kill_process(Pid::from_raw(pid).expect("a pid"), Signal::TERM).expect("it runs");
        wait_until("the trace is saved", || std::fs::metadata(harness.path("t")).ok().filter(|meta| meta.len() > 0));
        Ok(())
    }
    esatto_tests::for_each_client!(scenario);
}

mod background_with_a_config_from_stdin {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        let harness = Harness::with_perfetto(client);
        let _service = harness.service(service);
        let config = crate::rows::SHORT;
        let output = output_of(&mut harness.perfetto(&["-d", "-c", "-", "--txt", "-o", "t"]), config);
        assert!(output.status.success(), "{output:?}");
        wait_until("the trace is saved", || std::fs::metadata(harness.path("t")).ok().filter(|meta| meta.len() > 0));
        Ok(())
    }
    esatto_tests::for_each_client!(scenario);
}

mod background_mistakes_are_told_at_once {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        let harness = Harness::with_perfetto(client);
        let _service = harness.service(service);
        for mode in ["-d", "-D"] {
            let output = output_of(&mut harness.perfetto(&[mode, "-c", "-", "--txt", "-o", "t"]), "nothing: 1\n");
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            assert!(output.stdout.is_empty(), "{output:?}");
            assert!(String::from_utf8_lossy(&output.stderr).contains("No field named"), "{output:?}");
        }
        Ok(())
    }
    esatto_tests::for_each_client!(scenario);
}

mod notify_fd_gets_a_byte_when_all_have_started {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        let harness = Harness::with_perfetto(client);
        let _service = harness.service(service);
        // The shell opens descriptor 7, and od shows the byte.
        let script = "\"$@\" 7>byte & wait; od -An -tu1 byte";
        let perfetto = harness.perfetto(&[]);
        let mut command = harness.command("/bin/sh");
        command.args(["-c", script, "sh"]);
        if client == Implementation::Ours {
            command.arg(perfetto.get_program()).arg("perfetto");
        } else {
            command.arg(perfetto.get_program());
        }
        command.args(["--notify-fd", "7", "-t", "500ms", "-o", "t"]);
        let output = output_of(&mut command, "");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0", "{output:?}");
        Ok(())
    }
    esatto_tests::for_each_client!(scenario);
}

/// With Perfetto's command a refused session is a success here.
#[test]
fn a_refused_session_in_the_background_is_a_failure() {
    let harness = Harness::with_perfetto(Implementation::Ours);
    let _service = harness.service(Implementation::Ours);
    harness.write("refused.cfg", crate::rows::REFUSED);
    let args = ["-D", "-c", "refused.cfg", "--txt", "-o", "t"];
    let output = output_of(&mut harness.perfetto(&args), "");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let output = output_of(harness.perfetto(&args).env("ESATTO_PERFETTO_ODDITIES", "1"), "");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

/// Snapshots of a session in the background stay beside its file, not in `/`.
#[test]
fn snapshots_of_the_background_stay_beside_the_file() {
    let harness = Harness::with_perfetto(Implementation::Ours);
    let _service = harness.service(Implementation::Ours);
    let config = "buffers { size_kb: 64 } data_sources { config { name: \"track_event\" } } trigger_config { \
                  trigger_mode: CLONE_SNAPSHOT trigger_timeout_ms: 3000 triggers { name: \"t1\" stop_delay_ms: 1 } }";
    let output = output_of(&mut harness.perfetto(&["-D", "-c", "-", "--txt", "-o", "t"]), config);
    assert!(output.status.success(), "{output:?}");
    let output = output_of(harness.command(esatto_tests::esatto_bin()).args(["trigger", "t1"]), "");
    assert!(output.status.success(), "{output:?}");
    wait_until("the snapshot is saved", || std::fs::metadata(harness.path("t.0")).ok().filter(|meta| meta.len() > 0));
}
