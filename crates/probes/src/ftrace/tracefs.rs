//! [`Tracefs`]: the folder in which the kernel offers ftrace.

use core::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Places where tracefs is mounted, in the order in which they are tried.
pub(crate) const MOUNT_POINTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Longest file that is read. `available_events` and `set_ftrace_filter` have some MiB.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Files of a folder, such as the events of a group or the CPUs.
const MAX_FILES_PER_FOLDER: usize = 1 << 16;
/// Characters of a value in an error. Configs name them.
const MAX_SHOWN_CHARS: usize = 100;

/// Folder of a tracefs, or of one of its instances. It holds nothing open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tracefs {
    folder: PathBuf,
}

/// A file of tracefs that cannot be read or written.
#[derive(Debug)]
pub(crate) struct TracefsError {
    action: Action,
    path: PathBuf,
    why: io::Error,
}

/// Operation on a file.
#[derive(Debug)]
enum Action {
    Read,
    Write(String),
}

impl Tracefs {
    /// Finds the first of these mount points that has a tracefs that may be read.
    ///
    /// # Errors
    ///
    /// The reason why none can be used, and what to do about it.
    pub(crate) fn find(mount_points: &[PathBuf]) -> Result<Self, String> {
        let mut denied = None;
        for folder in mount_points {
            let tracefs = Self { folder: folder.clone() };
            // Not the file `trace`: to open it stops tracing in old kernels.
            match tracefs.read("tracing_on") {
                Ok(_) => return Ok(tracefs),
                Err(error) if error.why.kind() == io::ErrorKind::NotFound => {}
                Err(error) => denied = denied.or_else(|| Some(error.to_string())),
            }
        }
        Err(denied.unwrap_or_else(|| {
            let place = mount_points.first().map(|place| place.display().to_string()).unwrap_or_default();
            format!(
                "no tracefs at {place}; mount it with `mount -t tracefs nodev {place}` (a container needs it from its \
                 host, and a kernel needs CONFIG_FTRACE)"
            )
        }))
    }

    pub(crate) const fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Returns the folder of an instance. `hyp` and `hypervisor` are instances of the kernel.
    pub(crate) fn instance(&self, name: &str) -> Self {
        match name {
            "" => self.clone(),
            "hyp" | "hypervisor" => Self { folder: self.folder.join(name) },
            _ => Self { folder: self.folder.join("instances").join(name) },
        }
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    pub(crate) fn has(&self, file: &str) -> bool {
        self.path(file).exists()
    }

    /// Reads a file.
    pub(crate) fn read(&self, file: &str) -> Result<Vec<u8>, TracefsError> {
        let path = self.path(file);
        read(&path).map_err(|why| TracefsError { action: Action::Read, path, why })
    }

    /// Reads a file of one line.
    pub(crate) fn read_line(&self, file: &str) -> Result<String, TracefsError> {
        let content = self.read(file)?;
        Ok(String::from_utf8_lossy(&content).trim_end().to_owned())
    }

    /// Replaces the content of a file. An empty value only clears it.
    pub(crate) fn write(&self, file: &str, value: &str) -> Result<(), TracefsError> {
        self.open_and_write(file, value, OpenOptions::new().write(true).truncate(true))
    }

    /// Appends to a file. The kernel takes it as one more command, and keeps what it has.
    pub(crate) fn append(&self, file: &str, value: &str) -> Result<(), TracefsError> {
        self.open_and_write(file, value, OpenOptions::new().append(true))
    }

    /// Opens a file from which blocks are read without waiting.
    pub(crate) fn open_pipe(&self, file: &str) -> Result<File, TracefsError> {
        let path = self.path(file);
        let flags = OFlags::NONBLOCK.bits() as i32;
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(&path);
        opened.map_err(|why| TracefsError { action: Action::Read, path, why })
    }

    /// Returns the names of the folders in a folder, sorted.
    pub(crate) fn folders(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(folder)) else { return Vec::new() };
        let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let names = folders.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<_> = names.take(MAX_FILES_PER_FOLDER).collect();
        names.sort_unstable();
        names
    }

    /// Returns the numbers of the CPUs that have a ring buffer, sorted.
    pub(crate) fn cpus(&self) -> Vec<u32> {
        let folders = self.folders("per_cpu");
        let mut cpus: Vec<u32> = folders.iter().filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
        cpus.sort_unstable();
        cpus
    }

    fn open_and_write(&self, file: &str, value: &str, options: &OpenOptions) -> Result<(), TracefsError> {
        let path = self.path(file);
        write(&path, value, options).map_err(|why| TracefsError { action: Action::Write(shown(value)), path, why })
    }
}

impl TracefsError {
    pub(crate) fn kind(&self) -> io::ErrorKind {
        self.why.kind()
    }
}

impl core::error::Error for TracefsError {}

impl fmt::Display for TracefsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display().to_string();
        match &self.action {
            Action::Read => write!(f, "cannot read {}", shown(&path))?,
            Action::Write(value) if value.is_empty() => write!(f, "cannot clear {}", shown(&path))?,
            Action::Write(value) => write!(f, "cannot write `{value}` to {}", shown(&path))?,
        }
        write!(f, ": {}", self.why)?;
        match self.why.kind() {
            io::ErrorKind::PermissionDenied => f.write_str(remedy_for(rustix::process::geteuid().is_root())),
            io::ErrorKind::NotFound => f.write_str("; this kernel does not have it"),
            io::ErrorKind::ReadOnlyFilesystem => f.write_str("; mount the tracefs writable (containers often do not)"),
            io::ErrorKind::ResourceBusy => f.write_str("; end the other program that uses it"),
            io::ErrorKind::OutOfMemory => f.write_str("; use a smaller buffer_size_kb"),
            _ => Ok(()),
        }
    }
}

/// Returns the remedy if the kernel denies a file.
fn remedy_for(is_root: bool) -> &'static str {
    match is_root {
        true => "; this is root, so a container, missing capabilities or the kernel's lockdown mode forbid it",
        false => "; run as root, or own the tracefs: `chown -R USER /sys/kernel/tracing`",
    }
}

/// Returns the begin of a text, without control characters.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SHOWN_CHARS).flat_map(char::escape_debug).collect();
    if text.chars().nth(MAX_SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES).read_to_end(&mut content)?;
    Ok(content)
}

/// The kernel takes a value with one call.
fn write(path: &Path, value: &str, options: &OpenOptions) -> io::Result<()> {
    let mut file = options.open(path)?;
    if !value.is_empty() {
        file.write_all(value.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_file_value_reason_and_remedy() {
        let error = |kind: rustix::io::Errno| TracefsError {
            action: Action::Write(shown("boot\n\u{1b}")),
            path: "/t/trace_clock".into(),
            why: kind.into(),
        };
        let text = error(rustix::io::Errno::ACCESS).to_string();
        assert!(text.starts_with("cannot write `boot\\n\\u{1b}` to /t/trace_clock: Permission denied"), "{text}");
        assert!(text.ends_with(remedy_for(rustix::process::geteuid().is_root())), "{text}");
        assert!(remedy_for(true).contains("lockdown") && !remedy_for(false).contains("lockdown"));
        let text = error(rustix::io::Errno::NOENT).to_string();
        assert!(text.ends_with("; this kernel does not have it"), "{text}");
    }

    #[test]
    fn a_machine_without_tracefs_is_told_how_to_mount_it() {
        let nowhere = [PathBuf::from("/nowhere/tracing"), PathBuf::from("/nowhere/else")];
        let error = Tracefs::find(&nowhere).expect_err("no tracefs");
        assert!(error.contains("mount -t tracefs nodev /nowhere/tracing"), "{error}");
    }
}
