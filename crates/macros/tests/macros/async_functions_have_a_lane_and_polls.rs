use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Waker};

use esatto_trace::{Slice, Trace};

use super::{Yield, arguments, block_on, name, outline, record};

esatto::categories! { static FUTURES = "async functions"; }

fn poll_once<F: Future>(future: Pin<&mut F>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

/// Returns the slices with this name: of the lane, and of threads.
fn parts<'t>(trace: &'t Trace, wanted: &str) -> (Vec<&'t Slice>, Vec<&'t Slice>) {
    trace.slices.iter().filter(|slice| name(slice) == wanted).partition(|slice| slice.tid.is_none())
}

/// Returns the flows as pairs of indexes in `slices`; -1 stands for another slice.
fn flows(trace: &Trace) -> Vec<(usize, usize)> {
    trace.flows.iter().map(|flow| (flow.from, flow.to)).collect()
}

#[esatto::trace(FUTURES, args(rounds))]
async fn worker(rounds: usize) -> usize {
    for _ in 0..rounds {
        step().await;
    }
    rounds
}

#[esatto::trace(FUTURES, polls)]
async fn step() {
    Yield::default().await;
}

#[esatto::trace(FUTURES, lifetime)]
async fn patient() {
    Yield::default().await;
}

#[test]
fn lifetime_and_polls_are_linked() {
    let trace = record(&FUTURES, || assert_eq!(block_on(worker(2)), 2));
    let (lane, polls) = parts(&trace, "worker");
    assert_eq!((lane.len(), polls.len()), (1, 3));
    assert_eq!(lane[0].track_name.as_deref(), Some("worker"));
    assert_eq!(arguments(&trace, "worker"), ["rounds: 2"]);
    let end = lane[0].ts_ns + lane[0].duration_ns.expect("ends");
    for poll in &polls {
        assert!(lane[0].ts_ns <= poll.ts_ns && poll.ts_ns + poll.duration_ns.expect("ends") <= end);
    }
    let place = |slice: &Slice| trace.slices.iter().position(|other| other.event == slice.event).expect("is there");
    let chain: Vec<_> = lane.iter().chain(&polls).map(|slice| place(slice)).collect();
    let expected: Vec<_> = chain.windows(2).map(|pair| (pair[0], pair[1])).collect();
    let (steps_lane, steps) = parts(&trace, "step");
    assert_eq!((steps_lane.len(), steps.len()), (0, 4), "polls only");
    assert!(steps.iter().all(|step| step.depth == 1), "below the polls of the worker");
    let of_worker: Vec<_> = flows(&trace).into_iter().filter(|(from, _)| chain.contains(from)).collect();
    assert_eq!(of_worker, expected);
}

#[test]
fn the_lifetime_can_be_recorded_alone() {
    let trace = record(&FUTURES, || block_on(patient()));
    let (lane, polls) = parts(&trace, "patient");
    assert_eq!((lane.len(), polls.len()), (1, 0));
    assert!(lane[0].duration_ns.is_some());
}

#[test]
fn concurrent_calls_have_lanes_of_their_own() {
    let trace = record(&FUTURES, || {
        // The calls are not nested: the first one that begins ends first.
        let (mut a, mut b) = (pin!(worker(1)), Some(Box::pin(worker(5))));
        assert!(!poll_once(a.as_mut()));
        assert!(!poll_once(b.as_mut().expect("is there").as_mut()));
        assert!(poll_once(a.as_mut()));
        assert!(!poll_once(b.as_mut().expect("is there").as_mut()));
        b = None;
        let _ = b;
        block_on(worker(0));
    });
    let (lanes, polls) = parts(&trace, "worker");
    assert_eq!((lanes.len(), polls.len()), (3, 5));
    assert!(lanes.iter().all(|slice| slice.depth == 0 && slice.duration_ns.is_some()), "cancellation ends it, too");
    assert_ne!(lanes[0].track, lanes[1].track);
    assert!([lanes[0].track, lanes[1].track].contains(&lanes[2].track), "lanes are used again");
}

#[test]
fn polls_on_several_threads_are_linked() {
    let trace = record(&FUTURES, || {
        let mut task = Box::pin(worker(2));
        while !poll_once(task.as_mut()) {
            task = std::thread::spawn(move || {
                assert!(!poll_once(task.as_mut()));
                task
            })
            .join()
            .expect("does not panic");
        }
    });
    let (lane, polls) = parts(&trace, "worker");
    assert_eq!((lane.len(), polls.len()), (1, 3));
    assert_eq!(polls[0].tid, polls[2].tid);
    assert_ne!(polls[0].tid, polls[1].tid);
    assert!(polls.iter().all(|poll| poll.duration_ns.is_some()));
}

trait Service {
    fn boxed<'a>(&'a self, text: &'a str) -> Pin<Box<dyn Future<Output = Result<usize, std::fmt::Error>> + Send + 'a>>;
    fn opaque(&self, size: usize) -> impl Future<Output = usize> + Send;
    async fn native(&mut self) -> usize;
}

#[async_trait::async_trait]
trait Transformed {
    async fn transformed(&self, text: &str) -> Result<usize, std::num::ParseIntError>;
    async fn taking(self, mut size: usize) -> usize;
}

#[derive(Clone, Copy)]
struct Server(usize);

#[esatto::trace(FUTURES, args(all))]
impl Service for Server {
    fn boxed<'a>(&'a self, text: &'a str) -> Pin<Box<dyn Future<Output = Result<usize, std::fmt::Error>> + Send + 'a>> {
        Box::pin(async move {
            Yield::default().await;
            use std::fmt::Write;
            write!(String::new(), "{text}")?;
            Ok(text.len() + self.0)
        })
    }

    fn opaque(&self, size: usize) -> impl Future<Output = usize> + Send {
        let own = self.0;
        async move {
            Yield::default().await;
            size + own
        }
    }

    async fn native(&mut self) -> usize {
        self.0 += 1;
        self.0
    }
}

#[async_trait::async_trait]
impl Transformed for Server {
    #[esatto::trace(FUTURES, args(text), err)]
    async fn transformed(&self, text: &str) -> Result<usize, std::num::ParseIntError> {
        Yield::default().await;
        let number: usize = text.parse()?;
        Ok(number + self.0)
    }

    #[esatto::trace(FUTURES, args(all), ret)]
    async fn taking(self, mut size: usize) -> usize {
        size += self.0;
        Yield::default().await;
        size
    }
}

#[test]
fn boxed_and_returned_async_blocks_are_async_functions() {
    let trace = record(&FUTURES, || {
        let mut server = Server(1);
        assert_eq!(block_on(server.boxed("four")), Ok(5));
        assert_eq!(block_on(server.opaque(2)), 3);
        assert_eq!(block_on(server.native()), 2);
        assert_eq!(block_on(server.transformed("40")), Ok(42));
        assert_eq!(block_on(server.taking(8)), 10);
    });
    for (name, polls, expected) in [
        ("Server::boxed", 2, &["text: \"four\""][..]),
        ("Server::opaque", 2, &["size: 2"]),
        ("Server::native", 1, &[]),
        ("transformed", 2, &["text: \"40\""]),
        ("taking", 2, &["size: 8", "return: 10"]),
    ] {
        let (lane, found) = parts(&trace, name);
        assert_eq!((lane.len(), found.len()), (1, polls), "{name} in {:#?}", outline(&trace));
        assert_eq!(arguments(&trace, name), expected, "{name}");
    }
}

#[test]
fn traced_futures_stay_send_and_small() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    #[esatto::trace(FUTURES)]
    async fn big() -> usize {
        let room = [0_u8; 1000];
        Yield::default().await;
        room.len()
    }
    #[esatto::trace(FUTURES)]
    async fn around() -> usize {
        big().await
    }
    let size = size_of_val(&is_send(around()));
    assert!(size < 2000, "the body is there once: {size} bytes");
}

/// The compiler calls braces unnecessary in a block of one line. Those that the macro nests must
/// not be among them.
#[rustfmt::skip]
mod on_one_line {
    use std::future::Future;
    use std::pin::Pin;

    use super::FUTURES;

    #[esatto::trace(FUTURES)]
    pub(super) fn block(n: u32) -> impl Future<Output = u32> { async move { n } }

    #[esatto::trace(FUTURES)]
    pub(super) fn boxed(n: u32) -> Pin<Box<dyn Future<Output = u32>>> { Box::pin(async move { n }) }

    #[esatto::trace(FUTURES)]
    pub(super) async fn awaited(n: u32) -> u32 { async { n }.await }

    #[esatto::trace(FUTURES)]
    pub(super) async fn plain(n: u32) -> u32 { n }
}

#[test]
fn functions_on_one_line_have_no_warnings() {
    let trace = record(&FUTURES, || {
        let sum = async {
            let boxed = on_one_line::boxed(2).await;
            on_one_line::block(1).await + boxed + on_one_line::awaited(3).await + on_one_line::plain(4).await
        };
        assert_eq!(block_on(sum), 10);
    });
    for function in ["block", "boxed", "awaited", "plain"] {
        let (lane, polls) = parts(&trace, function);
        assert_eq!((lane.len(), polls.len()), (1, 1), "{function}");
    }
}
