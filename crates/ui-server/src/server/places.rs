//! Places for connections: few, and a newcomer always gets one.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Connections that have not shown that they may be here. The oldest one goes if another comes.
const MAX_WAITING: usize = 32;
/// Connections that have. A browser opens six, and as many for each further page.
const MAX_ADMITTED: usize = 64;
/// Threads of connections, including those that are about to end.
const MAX_THREADS: usize = 160;

/// The connections of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    waiting: BTreeMap<u64, TcpStream>,
    admitted: BTreeSet<u64>,
    threads: usize,
    next: u64,
}

impl Places {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Takes a place for a connection, or returns `None` if too many are about to end.
    pub(crate) fn enter(&self, stream: &TcpStream) -> Option<Place> {
        let mut taken = self.taken();
        if taken.threads >= MAX_THREADS {
            return None;
        }
        let stream = stream.try_clone().ok()?;
        if taken.waiting.len() >= MAX_WAITING {
            let oldest = taken.waiting.pop_first().map(|(_, oldest)| oldest);
            // Its thread, which waits for bytes, ends.
            oldest?.shutdown(Shutdown::Both).ok();
        }
        let id = taken.next;
        taken.next += 1;
        taken.threads += 1;
        taken.waiting.insert(id, stream);
        Some(Place { places: self.clone(), id })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a connection. It is free when this value is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    id: u64,
}

impl Place {
    /// Moves the connection to those that are never closed for another one. Returns false if
    /// there are too many of them.
    pub(crate) fn admit(&self) -> bool {
        let mut taken = self.places.taken();
        if taken.admitted.contains(&self.id) {
            return true;
        }
        if taken.admitted.len() >= MAX_ADMITTED || taken.waiting.remove(&self.id).is_none() {
            return false;
        }
        taken.admitted.insert(self.id)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.waiting.remove(&self.id);
        taken.admitted.remove(&self.id);
        taken.threads -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::net::TcpListener;

    #[test]
    fn a_newcomer_takes_the_place_of_the_oldest_that_waits() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        };
        let places = Places::new();
        let (_admitted_client, admitted) = connect();
        let first = places.enter(&admitted).unwrap();
        assert!(first.admit() && first.admit());
        let (mut oldest_client, oldest) = connect();
        let second = places.enter(&oldest).unwrap();
        let streams: Vec<_> = (0..MAX_WAITING).map(|_| connect()).collect();
        let others: Vec<_> = streams.iter().map(|(_, stream)| places.enter(stream).unwrap()).collect();
        assert_eq!(oldest_client.read(&mut [0]).unwrap(), 0, "it has lost its place");
        assert!(!second.admit());
        assert!(others.iter().all(Place::admit));
        drop((first, second, others));
        let taken = places.taken();
        assert_eq!((taken.threads, taken.waiting.len(), taken.admitted.len()), (0, 0, 0));
    }

    #[test]
    fn threads_have_a_bound() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let places = Places::new();
        let held: Vec<_> = (0..MAX_THREADS).map(|_| places.enter(&client).unwrap()).collect();
        assert!(places.enter(&client).is_none());
        drop(held);
        assert!(places.enter(&client).is_some());
    }
}
