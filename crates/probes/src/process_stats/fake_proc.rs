//! [`FakeProc`]: a folder like `/proc` for tests.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::proc_folder::ProcFolder;

/// A temporary folder, removed at the end.
pub(crate) struct FakeProc {
    pub(crate) path: PathBuf,
}

impl FakeProc {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("esatto-proc-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a temporary folder");
        Self { path }
    }

    pub(crate) fn open(&self) -> ProcFolder {
        ProcFolder::open(&self.path).expect("a folder")
    }

    pub(crate) fn folder(&self, name: &str) {
        fs::create_dir_all(self.path.join(name)).expect("a folder");
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("a file");
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_dir_all(self.path.join(name)).expect("a folder");
    }

    /// Adds a process of one thread that uses memory.
    pub(crate) fn process(&self, pid: i32, name: &str) {
        self.thread(pid, pid, name);
        let cmdline = format!("/bin/{name}\0--pid\0{pid}\0");
        self.file(&format!("{pid}/cmdline"), cmdline);
        self.file(&format!("{pid}/oom_score_adj"), "0\n");
    }

    /// Adds a thread, and its process's folder if it is the main one.
    pub(crate) fn thread(&self, pid: i32, tid: i32, name: &str) {
        let status = format!(
            "Name:\t{name}\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t{pid}\nNgid:\t0\nPid:\t{tid}\nPPid:\t1\n\
             TracerPid:\t0\nUid:\t1000\t1001\t1002\t1003\nGid:\t100\t100\t100\t100\nFDSize:\t64\nGroups:\t4 24\n\
             NStgid:\t{pid}\nNSpid:\t{tid}\nKthread:\t0\nVmPeak:\t    9000 kB\nVmSize:\t    8000 kB\nVmLck:\t       4 kB\n\
             VmPin:\t       0 kB\nVmHWM:\t    3500 kB\nVmRSS:\t    {rss} kB\nRssAnon:\t    1000 kB\nRssFile:\t    \
             1500 kB\nRssShmem:\t     {pid} kB\nVmData:\t    2000 kB\nVmSwap:\t      12 kB\nThreads:\t1\n",
            rss = 2500 + pid,
        );
        self.file(&format!("{tid}/status"), &status);
        self.folder(&format!("{pid}/task/{tid}"));
    }
}

impl Drop for FakeProc {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
