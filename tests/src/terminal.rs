//! A terminal for programs that ask and paint.

use crate::program::wait_until;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};

/// A program on a pseudo-terminal of its own. It is killed when dropped.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    /// The end of the user.
    keyboard: File,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    /// Starts `command` on a terminal with this many columns.
    ///
    /// # Panics
    ///
    /// There is no terminal, or the command cannot be started.
    pub fn start(command: &mut Command, columns: u16) -> Self {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&main).and_then(|()| unlockpt(&main)).expect("its other end");
        let name = ptsname(&main, Vec::new()).expect("its name").into_string().expect("UTF-8");
        tcsetwinsize(&main, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).expect("a size");
        let end = || OpenOptions::new().read(true).write(true).open(&name).expect("the end of the program");
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm");
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        // The command keeps its ends open, which would hide that the program has closed its own.
        command
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        let keyboard = File::from(main);
        let shown = Arc::<Mutex<Vec<u8>>>::default();
        let mut screen = keyboard.try_clone().expect("a copy of the terminal");
        let seen = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            // It fails when the last program closes the terminal.
            while let Ok(length @ 1..) = screen.read(&mut part) {
                seen.lock().expect("no panic").extend_from_slice(&part[..length]);
            }
        });
        Self { child, keyboard, shown }
    }

    /// Returns what the terminal has shown so far, with the echo of what was typed.
    ///
    /// # Panics
    ///
    /// It is no UTF-8.
    #[must_use]
    pub fn shown(&self) -> String {
        let shown = self.shown.lock().expect("no panic").clone();
        String::from_utf8_lossy(&shown).replace("\r\n", "\n")
    }

    /// Waits until `text` has been shown after the first `seen` bytes. Returns the bytes up to its
    /// end.
    ///
    /// # Panics
    ///
    /// It is not shown in time.
    #[must_use]
    pub fn wait_for(&self, text: &str, seen: usize) -> usize {
        wait_until(&format!("the terminal shows {text:?}"), || {
            let shown = self.shown();
            shown.get(seen..).and_then(|rest| rest.find(text)).map(|at| seen + at + text.len())
        })
    }

    /// Types a line.
    ///
    /// # Panics
    ///
    /// The terminal is closed.
    pub fn type_line(&mut self, line: &str) {
        self.keyboard.write_all(format!("{line}\n").as_bytes()).expect("the terminal takes it");
    }

    /// Types the end of the input (Ctrl-D).
    ///
    /// # Panics
    ///
    /// The terminal is closed.
    pub fn type_end(&mut self) {
        self.keyboard.write_all(b"\x04").expect("the terminal takes it");
    }

    /// Types Ctrl-C. The terminal may be that of no process group, so the program gets the signal
    /// itself.
    ///
    /// # Panics
    ///
    /// The program has ended.
    pub fn type_interrupt(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    }

    /// Waits for the end of the program. Returns its status and all that was shown.
    ///
    /// # Panics
    ///
    /// It does not end in time.
    pub fn wait(&mut self) -> (ExitStatus, String) {
        let status =
            wait_until("the program on the terminal has ended", || self.child.try_wait().expect("the child is ours"));
        // The screen may be behind. The reader lets go of its copy at the end.
        wait_until("the terminal has shown everything", || (Arc::strong_count(&self.shown) == 1).then_some(()));
        (status, self.shown())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("---- terminal\n{}----", self.shown());
        }
    }
}
