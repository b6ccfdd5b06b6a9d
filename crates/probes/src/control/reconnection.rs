//! [`Reconnection`]: when to connect to the service.

use std::time::{Duration, Instant};

use esatto_ipc::{Address, AddressError};

use super::socket_watch::SocketWatch;

/// Pause after the first attempt (`docs/spec/probes.md` §1). Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Pause after a socket file has appeared: its program may not listen yet. It also bounds the
/// attempts if a program makes such files again and again.
const PAUSE_AFTER_APPEARANCE: Duration = Duration::from_millis(10);

/// Time of the next attempt.
pub(super) struct Reconnection {
    /// The address that the user named.
    named: Option<String>,
    pause: Duration,
    next: Instant,
    watch: Option<SocketWatch>,
}

impl Reconnection {
    pub(super) fn new(named: Option<String>, now: Instant) -> Self {
        Self { named, pause: FIRST_PAUSE, next: now, watch: None }
    }

    /// Returns the address that the user named.
    pub(super) fn named(&self) -> Option<&str> {
        self.named.as_deref()
    }

    /// Returns when to connect.
    pub(super) const fn next(&self) -> Instant {
        self.next
    }

    /// Notes that an attempt failed.
    pub(super) fn failed(&mut self, now: Instant) {
        self.next = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        if self.watch.is_none() {
            self.watch = self.new_watch();
        }
    }

    /// Notes that the service accepted this producer.
    pub(super) fn succeeded(&mut self) {
        self.pause = FIRST_PAUSE;
        self.watch = None;
    }

    /// Returns the watch of the socket's folder; readable when something appears in it.
    pub(super) const fn watch(&self) -> Option<&SocketWatch> {
        self.watch.as_ref()
    }

    /// Reads the watch. If the socket has appeared, the next attempt comes soon.
    pub(super) fn look(&mut self, now: Instant) {
        if self.watch.as_ref().is_some_and(SocketWatch::has_appeared) {
            // The folder that was watched may be the parent of the socket's folder.
            self.watch = self.new_watch();
            self.pause = FIRST_PAUSE;
            self.next = self.next.min(now + PAUSE_AFTER_APPEARANCE);
        }
    }

    /// Returns the address that is used now.
    pub(super) fn address(&self) -> Result<Address, AddressError> {
        match &self.named {
            Some(text) => Address::parse(text),
            None => Address::producer_default(),
        }
    }

    /// Returns a watch for the socket, if the address is a path.
    fn new_watch(&self) -> Option<SocketWatch> {
        SocketWatch::new(self.address().ok()?.as_path()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_30_seconds_and_begin_again_after_a_connection() {
        let now = Instant::now();
        let mut reconnection = Reconnection::new(Some("@nobody".into()), now);
        assert_eq!(reconnection.next(), now);
        let mut pauses = Vec::new();
        for _ in 0..11 {
            reconnection.failed(now);
            pauses.push((reconnection.next() - now).as_millis());
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
        reconnection.succeeded();
        reconnection.failed(now);
        assert_eq!(reconnection.next() - now, FIRST_PAUSE);
    }

    #[test]
    fn a_socket_that_appears_is_tried_at_once() {
        let folder = std::env::temp_dir().join(format!("esatto-reconnection-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("run").join("socket");
        let now = Instant::now();
        let mut reconnection = Reconnection::new(Some(path.display().to_string()), now);
        (0..8).for_each(|_| reconnection.failed(now));
        std::fs::write(folder.join("other"), "").unwrap();
        reconnection.look(now);
        assert!(reconnection.next() > now + LONGEST_PAUSE / 4, "another file");
        std::fs::create_dir(folder.join("run")).unwrap();
        reconnection.look(now);
        reconnection.failed(now);
        assert_eq!(reconnection.next(), now + FIRST_PAUSE, "the folder, but no socket yet");
        std::fs::write(&path, "").unwrap();
        reconnection.look(now);
        assert_eq!(reconnection.next(), now + PAUSE_AFTER_APPEARANCE);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
