//! Target of a trace: opens a file, or plans or creates one, without harm to files of others.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::Output;
use super::file_names::name_beside;
use super::kind::Kind;
use super::named_pipe::open_pipe;

/// Returns whether stdout was closed when the program began. Rust opens `/dev/null` in its place,
/// for reading and writing, as nobody does who means it.
fn is_stand_in(stdout: &io::Stdout) -> bool {
    let Ok(meta) = rustix::fs::fstat(stdout) else { return true };
    let is_null = meta.st_rdev == rustix::fs::makedev(1, 3) && FileType::from_raw_mode(meta.st_mode).is_char_device();
    is_null && rustix::fs::fcntl_getfl(stdout).is_ok_and(|flags| flags & OFlags::ACCMODE == OFlags::RDWR)
}

/// Opens the file at `path`, or plans it. Returns the name of the file that this leads to.
pub(super) fn open(path: &Path) -> io::Result<(File, Kind, PathBuf)> {
    let opened = |file, kind| Ok((file, kind, path.to_owned()));
    if Output::is_stdout(path) {
        if is_stand_in(&io::stdout()) {
            return Err(io::Error::other("stdout is closed"));
        }
        return opened(io::stdout().as_fd().try_clone_to_owned()?.into(), Kind::Given);
    }
    if path == Path::new("/dev/stderr") || path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd") {
        // Opening it again would start at its first byte: append, so that nothing is overwritten.
        return opened(OpenOptions::new().append(true).open(path)?, Kind::Given);
    }
    if let Some(file) = plan(path)? {
        return opened(file, Kind::Planned);
    }
    // With O_CREAT, the kernel refuses files that other users have placed in a folder like /tmp
    // (fs.protected_regular, fs.protected_fifos).
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(0o600);
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A symbolic link to a missing file. The kernel follows it, because it knows which
            // links are safe. Later the file is created where it was now.
            let file = options.read(true).open(path)?;
            let target = std::fs::read_link(proc_path(&file)).or_else(|_| path.canonicalize())?;
            remove(&target, &file)?;
            Ok((file, Kind::Planned, target))
        }
        Err(error) => Err(error),
        Ok(meta) if meta.is_file() => {
            let file = options.clone().read(true).open(path).or_else(|_| options.open(path))?;
            if !file.metadata()?.is_file() {
                return Err(io::Error::other("another program has replaced it"));
            }
            opened(file, Kind::Existing)
        }
        Ok(meta) if meta.file_type().is_socket() => Err(io::Error::other("it is a socket")),
        Ok(meta) if meta.file_type().is_fifo() => {
            let (file, kind) = open_pipe(path)?;
            opened(file, kind)
        }
        Ok(_) => opened(options.open(path)?, Kind::Stream),
    }
}

/// Creates a file, readable only for its owner. Fails if the name is taken, also by a link.
pub(super) fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Tries whether a file of this name can be created. It is created again for its first packet.
/// Returns the file of the trial, or `None` if the name is taken.
pub(super) fn plan(path: &Path) -> io::Result<Option<File>> {
    let is_free = matches!(path.symlink_metadata(), Err(error) if error.kind() == io::ErrorKind::NotFound);
    let names_file = path.file_name().is_some() && !path.as_os_str().as_bytes().ends_with(b"/");
    // Other programs do not see an empty file, not even for a moment.
    if let Some(file) = Some(path).filter(|_| is_free && names_file).and_then(nameless) {
        return Ok(Some(file));
    }
    match create_new(path) {
        Ok(file) => {
            remove(path, &file)?;
            Ok(Some(file))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes the name `path` if it is still that of `file`.
pub(super) fn remove(path: &Path, file: &File) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default();
    // Through a descriptor, so that no link takes the place of the folder between the two steps.
    let folder = rustix::fs::open(folder_of(path), OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let named = match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(()),
        named => named?,
    };
    let own = rustix::fs::fstat(file)?;
    if (own.st_dev, own.st_ino) == (named.st_dev, named.st_ino) {
        rustix::fs::unlinkat(&folder, name, AtFlags::empty())?;
    }
    Ok(())
}

pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// Opens a new file without a name, in the folder where `name` belongs. Returns `None` if the file
/// system has no such files, or `name` is a link.
pub(super) fn nameless(name: &Path) -> Option<File> {
    if name.symlink_metadata().is_ok() {
        return None;
    }
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(folder_of(name), flags, Mode::RUSR | Mode::WUSR).ok()?);
    // It gets its name through /proc.
    Path::new(&proc_path(&file)).exists().then_some(file)
}

pub(super) fn proc_path(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Creates a file in the folder of `target`, under a name that nobody else uses, readable only for
/// its owner.
pub(super) fn temporary_beside(target: &Path) -> io::Result<(PathBuf, File)> {
    let temporary = name_beside(target)?;
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&temporary)?;
    Ok((temporary, file))
}

/// Creates a file in the folder of `target`, with the mode and, if allowed, the owner of the old
/// one.
pub(super) fn create_beside(target: &Path, old: &Metadata) -> io::Result<(PathBuf, File)> {
    let (temporary, file) = temporary_beside(target)?;
    // If the owner cannot be kept, record anyway. But without the owner, the mode could let other
    // users read the trace.
    if fchown(&file, Some(old.uid()), Some(old.gid())).is_ok() {
        let _ = file.set_permissions(old.permissions());
    }
    Ok((temporary, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_planned_without_a_trace_in_its_folder() {
        let dir = crate::private_service::Folder::create().unwrap();
        let new = dir.path().join("new");
        if nameless(&new).is_none() {
            return;
        }
        let changed = || std::fs::metadata(dir.path()).unwrap().modified().unwrap();
        let before = changed();
        // The clock of the file system ticks every few milliseconds.
        std::thread::sleep(core::time::Duration::from_millis(20));
        let (_, kind, _) = open(&new).unwrap();
        assert_eq!((changed(), kind), (before, Kind::Planned));
        for name in ["missing/new", "new/", "missing/", "x/.."] {
            assert!(open(&dir.path().join(name)).is_err(), "{name}");
        }
    }
}
