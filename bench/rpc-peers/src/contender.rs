//! Interface of the libraries that are measured.

use std::future::Future;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

/// One batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Number of connections, which all work at the same time.
    pub(crate) connections: usize,
    /// Calls of each connection.
    pub(crate) calls: usize,
    /// Bytes of the payload.
    pub(crate) size: usize,
    /// No replies, except for one at the end.
    pub(crate) is_one_way: bool,
}

/// Connections of a library.
pub(crate) trait Contender {
    /// Does a batch, and returns the time that it took.
    fn run(&mut self, work: &Work) -> Duration;
}

/// A connection that blocks.
pub(crate) trait Blocking: Send {
    /// One call after the other.
    fn round_trips(&mut self, calls: usize, payload: &[u8]);

    /// Calls without replies. Returns after the server has handled them.
    fn one_way(&mut self, calls: usize, payload: &[u8]);
}

/// A connection of an async library.
pub(crate) trait Async: Clone + 'static {
    /// One call after the other.
    fn round_trips(self, calls: usize, payload: Vec<u8>) -> impl Future<Output = ()>;

    /// Calls without replies, or several at the same time. Returns after the server has handled
    /// them.
    fn one_way(self, calls: usize, payload: Vec<u8>) -> impl Future<Output = ()>;
}

/// Connections of a blocking library: a thread for each, if there are several.
pub(crate) struct Threads<B>(pub(crate) Vec<B>);

impl<B: Blocking> Contender for Threads<B> {
    fn run(&mut self, work: &Work) -> Duration {
        let payload = vec![7; work.size];
        let run = |connection: &mut B| {
            if work.is_one_way {
                connection.one_way(work.calls, &payload);
            } else {
                connection.round_trips(work.calls, &payload);
            }
        };
        if let [connection] = &mut self.0[..] {
            let start = Instant::now();
            run(connection);
            return start.elapsed();
        }
        let ready = Barrier::new(self.0.len());
        thread::scope(|scope| {
            let threads: Vec<_> = self
                .0
                .iter_mut()
                .map(|connection| {
                    scope.spawn(|| {
                        ready.wait();
                        let start = Instant::now();
                        run(connection);
                        (start, Instant::now())
                    })
                })
                .collect();
            let times: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("calls succeed")).collect();
            let start = times.iter().map(|&(start, _)| start).min();
            let end = times.iter().map(|&(_, end)| end).max();
            end.zip(start).map_or(Duration::ZERO, |(end, start)| end - start)
        })
    }
}

/// Connections of an async library: a task for each, on one thread.
pub(crate) struct Tasks<A> {
    runtime: Runtime,
    local: LocalSet,
    connections: Vec<A>,
}

impl<A: Async> Tasks<A> {
    pub(crate) fn boxed<F: Future<Output = A>>(count: usize, connect: impl Fn() -> F) -> Box<dyn Contender> {
        let (runtime, local) = (runtime(), LocalSet::new());
        let connections = local.block_on(&runtime, async {
            let mut connections = Vec::new();
            for _ in 0..count {
                connections.push(connect().await);
            }
            connections
        });
        Box::new(Self { runtime, local, connections })
    }
}

impl<A: Async> Contender for Tasks<A> {
    fn run(&mut self, work: &Work) -> Duration {
        let Self { runtime, local, connections } = self;
        let run = |connection: &A| {
            let (connection, payload, work) = (connection.clone(), vec![7; work.size], *work);
            async move {
                if work.is_one_way {
                    connection.one_way(work.calls, payload).await;
                } else {
                    connection.round_trips(work.calls, payload).await;
                }
            }
        };
        local.block_on(runtime, async {
            let start = Instant::now();
            if let [connection] = &connections[..] {
                run(connection).await;
            } else {
                let tasks: Vec<_> =
                    connections.iter().map(|connection| tokio::task::spawn_local(run(connection))).collect();
                for task in tasks {
                    task.await.expect("calls succeed");
                }
            }
            start.elapsed()
        })
    }
}

/// The same runtime for all: one thread has the lowest latency.
pub(crate) fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Serves until the process ends.
pub(crate) fn serve_on_runtime(serve: impl Future<Output = ()>) {
    LocalSet::new().block_on(&runtime(), serve);
}

/// Calls of a library without one-way calls that are open at the same time.
pub(crate) const IN_FLIGHT: usize = 64;

/// Makes `calls` calls, many at the same time.
pub(crate) async fn in_flight<F: Future<Output = ()>>(calls: usize, call: impl Fn() -> F) {
    use futures::stream::{self, StreamExt as _};
    stream::iter(0..calls).for_each_concurrent(IN_FLIGHT, |_| call()).await;
}
