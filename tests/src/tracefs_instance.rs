//! Instances of tracefs.

use std::path::{Path, PathBuf};

/// An instance of tracefs that a test has to itself.
#[derive(Debug)]
pub struct Instance(PathBuf);

impl Instance {
    /// Makes an instance. Its name has the process id, so that tests do not meet.
    ///
    /// # Panics
    ///
    /// It cannot be made.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let path = Path::new("/sys/kernel/tracing/instances").join(format!("esatto-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self(path)
    }

    /// Returns its name, for the config.
    ///
    /// # Panics
    ///
    /// Never: the name is text.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.file_name().and_then(|name| name.to_str()).expect("a name")
    }

    /// Returns the path of one of its files.
    #[must_use]
    pub fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    /// Reads one of its files.
    ///
    /// # Panics
    ///
    /// It cannot be read.
    #[must_use]
    pub fn read(&self, file: &str) -> String {
        let path = self.0.join(file);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Writes one of its files.
    ///
    /// # Panics
    ///
    /// It cannot be written.
    pub fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// Waits until tracing and this event, such as `task/task_rename`, are on.
    pub fn wait_until_on(&self, event: &str) {
        crate::wait_until(&format!("{event} is on"), || {
            let is_on = |file: &str| self.read(file).trim() == "1";
            (is_on("tracing_on") && is_on(&format!("events/{event}/enable"))).then_some(())
        });
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // The programs that use it have ended, or end soon.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
