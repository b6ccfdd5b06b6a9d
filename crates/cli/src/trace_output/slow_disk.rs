//! Tells the user that a disk does not take the data. A write waits inside of the kernel, so
//! another thread speaks.

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use esatto_trace::escape::Line;

use crate::console::say;

/// Length of a write after which the user wants to know the reason.
const NOTICEABLE: Duration = Duration::from_secs(3);

/// Watches the writes to a file.
#[derive(Debug, Default)]
pub(super) struct SlowDisk(Option<Arc<Watch>>);

#[derive(Debug, Default)]
struct Watch {
    write: Mutex<Write>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Write {
    /// Number of the write, from 1.
    number: u64,
    /// The file, while it is written.
    file: Option<PathBuf>,
    /// The thread has nothing to wait for but the next write.
    is_idle: bool,
    is_over: bool,
}

impl SlowDisk {
    /// Notes that a write begins.
    pub(super) fn begin(&mut self, file: &Path) {
        let watch = self.0.get_or_insert_with(|| {
            let watch = Arc::<Watch>::default();
            let of_thread = Arc::clone(&watch);
            // Without the thread, the user learns it later.
            let _no_thread = thread::Builder::new().name("slow-disk".to_owned()).spawn(move || of_thread.run());
            watch
        });
        let mut write = watch.write.lock().unwrap_or_else(PoisonError::into_inner);
        write.number += 1;
        write.file = Some(file.to_owned());
        // Later writes do not wake the thread, so it costs nothing while the disk is quick.
        if write.is_idle {
            watch.changed.notify_one();
        }
    }

    /// Notes that the write has ended.
    pub(super) fn end(&self) {
        if let Some(watch) = &self.0 {
            watch.write.lock().unwrap_or_else(PoisonError::into_inner).file = None;
        }
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        if let Some(watch) = &self.0 {
            watch.write.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
            watch.changed.notify_one();
        }
    }
}

impl Watch {
    fn run(&self) {
        let mut told = 0;
        let mut write = self.write.lock().unwrap_or_else(PoisonError::into_inner);
        while !write.is_over {
            let number = write.number;
            if write.file.is_none() || number == told {
                write.is_idle = true;
                write = self.changed.wait(write).unwrap_or_else(PoisonError::into_inner);
                write.is_idle = false;
                continue;
            }
            let waited = self.changed.wait_timeout_while(write, NOTICEABLE, |write| !write.is_over);
            write = waited.unwrap_or_else(PoisonError::into_inner).0;
            if let (true, false, Some(file)) = (write.number == number, write.is_over, &write.file) {
                say!(
                    "Waiting for the disk of {}: a write has not ended for {} s. Nothing is lost by that while \
                     the buffers have room.",
                    Line(file.display()),
                    NOTICEABLE.as_secs()
                );
                told = number;
            }
        }
    }
}
