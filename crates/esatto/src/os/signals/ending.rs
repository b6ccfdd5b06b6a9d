//! Catches the signals that end the process, so that it can hand over first.
//!
//! The handler does what a handler may do: it writes the signal's number into a socket. A thread
//! reads it, hands over, and then lets the signal do what it would have done at once. If the
//! process has a handler of its own, the thread sends the signal again, and the handler of this
//! module passes it on. So does the handler of another copy of this crate, until the last one ends
//! the process.

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::io::{self, Read as _};
use std::os::fd::IntoRawFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Once;
use std::thread;
use std::time::{Duration, Instant};

use super::action::{Action, ENDING};
use super::other_copies::{self, Shown};
use super::{SIG_UNBLOCK, Set, pthread_sigmask};
use crate::os::exit::only_at_exit;
use crate::os::leaked::Leaked;
use crate::os::{ClockId, read_clock};

unsafe extern "C" {
    safe fn raise(signal: c_int) -> c_int;
    safe fn getpid() -> c_int;
    fn kill(process: c_int, signal: c_int) -> c_int;
    fn send(socket: c_int, bytes: *const c_void, size: usize, flags: c_int) -> isize;
    #[cfg_attr(target_os = "linux", link_name = "__errno_location")]
    #[cfg_attr(target_os = "android", link_name = "__errno")]
    #[cfg_attr(target_vendor = "apple", link_name = "__error")]
    safe fn errno_location() -> *mut c_int;
    fn sigemptyset(set: *mut Set) -> c_int;
    fn sigaddset(set: *mut Set, signal: c_int) -> c_int;
}

/// No SIGPIPE if the thread's end is closed. Apple's systems do not know the flag; there the
/// standard library sets an option of the socket.
const MSG_NOSIGNAL: c_int = if cfg!(target_vendor = "apple") { 0 } else { 0x4000 };

/// Signals that come again within this time are the same one: a terminal and the parent process may
/// both send it.
const SAME_NS: u64 = 500_000_000;

/// How long the end of a process waits for a signal that has arrived.
const LONGEST_HAND_OVER: Duration = Duration::from_secs(10);

/// Actions of the signals before, in the order of [`ENDING`].
static PREVIOUS: [Leaked<Action>; ENDING.len()] = [const { Leaked::none() }; ENDING.len()];
/// The end of the socket into which the handler writes.
static SOCKET: AtomicI32 = AtomicI32::new(-1);
/// The process that has the thread.
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// When the signals arrived for which the thread hands over, in the order of [`ENDING`]; 0: it does
/// not.
static PENDING_SINCE_NS: [AtomicU64; ENDING.len()] = [const { AtomicU64::new(0) }; ENDING.len()];
/// The signals that the handler passes on when they come the next time.
static PASSED: [AtomicBool; ENDING.len()] = [const { AtomicBool::new(false) }; ENDING.len()];
/// The signals whose previous handler was to be called once, and was.
static SPENT: [AtomicBool; ENDING.len()] = [const { AtomicBool::new(false) }; ENDING.len()];

/// The end of a hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The signal ends the process.
    End,
    /// A handler of the program decides.
    Continue,
}

/// The signals that have arrived, for the thread that hands over.
#[derive(Debug)]
pub(crate) struct Arrivals(UnixStream);

/// Is ready to catch the signals.
#[derive(Debug)]
#[must_use = "no signal is caught before `begin`"]
pub(crate) struct Catch(());

/// Makes the way of the signals from the handler to a thread. To be called once in a process, and
/// once more in a forked child.
pub(crate) fn prepare() -> io::Result<(Arrivals, Catch)> {
    let (writer, reader) = UnixStream::pair()?;
    writer.set_nonblocking(true)?;
    // Open for ever: a handler may run at any time.
    SOCKET.store(writer.into_raw_fd(), Ordering::Relaxed);
    // The portable clock reads something at its first use, which a handler must not do.
    let _ = read_clock(ClockId::Monotonic);
    for place in 0..ENDING.len() {
        PENDING_SINCE_NS[place].store(0, Ordering::Relaxed);
        PASSED[place].store(false, Ordering::Relaxed);
    }
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| only_at_exit(wait_for_the_signal));
    PROCESS.store(getpid(), Ordering::Release);
    Ok((Arrivals(reader), Catch(())))
}

impl Catch {
    /// Catches the signals from now on, except those that the program ignores.
    pub(crate) fn begin(self) {
        for (signal, previous) in ENDING.into_iter().zip(&PREVIOUS) {
            let signal = c_int::from(signal);
            let Some(mut present) = Action::of(signal) else { continue };
            // A forked child catches them already.
            while !present.is_ignored() && !present.is(handle) {
                // Before the handler, which needs it.
                previous.set(Some(Box::leak(Box::new(present))));
                match present.replaced_by(handle).set(signal) {
                    // Another thread has installed a handler meanwhile.
                    Some(replaced) if !replaced.is_same(&present) => present = replaced,
                    _ => break,
                }
            }
        }
        let previous = PREVIOUS.each_ref().map(|previous| previous.get().map_or(0, Action::address));
        other_copies::show(getpid(), Shown { handler: own_handler(), previous });
    }
}

fn own_handler() -> usize {
    handle as *const () as usize
}

impl Arrivals {
    /// Waits for the next signal.
    pub(crate) fn next(&mut self) -> Option<u8> {
        let mut number = [0];
        loop {
            match self.0.read(&mut number) {
                Ok(1) => return Some(number[0]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return None,
            }
        }
    }
}

/// Returns what a signal does after the process has handed over. A handler must not call this.
pub(crate) fn fate(signal: u8) -> Fate {
    other_copies::find(getpid(), own_handler());
    known_fate(signal)
}

/// As [`fate`], with the other copies that are known.
fn known_fate(signal: u8) -> Fate {
    // The first process of a container cannot end itself by a signal.
    let is_init = getpid() == 1;
    let is_default = place(signal.into()).is_some_and(is_by_default_at_last);
    if is_default && is_ours(signal.into()) && !is_init { Fate::End } else { Fate::Continue }
}

/// Waits until a signal that has arrived ends the process. A program that has sent itself the
/// signal would otherwise end first, with another status.
extern "C" fn wait_for_the_signal() {
    let has_arrived = |since: &AtomicU64| since.load(Ordering::Relaxed) != 0;
    if PROCESS.load(Ordering::Acquire) != getpid() || !PENDING_SINCE_NS.iter().any(has_arrived) {
        return;
    }
    other_copies::find(getpid(), own_handler());
    let is_near = |(signal, since): (u8, &AtomicU64)| has_arrived(since) && known_fate(signal) == Fate::End;
    let deadline = Instant::now() + LONGEST_HAND_OVER;
    while ENDING.into_iter().zip(&PENDING_SINCE_NS).any(is_near) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Lets a signal do what it does without this module.
pub(crate) fn let_act(signal: u8) {
    let number = c_int::from(signal);
    let Some(place) = place(number) else { return };
    match fate(signal) {
        Fate::End if is_by_default(place) => end_by(number),
        // If a handler was installed since, it has already run.
        Fate::End | Fate::Continue if is_ours(number) => {
            PASSED[place].store(true, Ordering::Relaxed);
            // SAFETY: the number is that of this process, and the signal exists.
            unsafe { kill(getpid(), number) };
        }
        Fate::End | Fate::Continue => {}
    }
    PENDING_SINCE_NS[place].store(0, Ordering::Relaxed);
}

/// Ends the process by a signal, whose handler and mask no longer matter.
fn end_by(signal: c_int) {
    if let Some(action) = Action::of(signal) {
        action.to_default().set(signal);
    }
    let mut set = Set::uninit();
    // SAFETY: the set is long enough, and emptied before anything else happens to it.
    unsafe {
        sigemptyset(&raw mut set);
        sigaddset(&raw mut set, signal);
        pthread_sigmask(SIG_UNBLOCK, &raw const set, ptr::null_mut());
    }
    raise(signal);
}

/// The handler. It allocates nothing and takes no lock.
unsafe extern "C" fn handle(signal: c_int, info: *mut c_void, context: *mut c_void) {
    let Some(place) = place(signal) else { return };
    let is_passed = PASSED[place].swap(false, Ordering::Relaxed);
    // A forked child has no thread that hands over.
    let is_here = PROCESS.load(Ordering::Acquire) == getpid();
    if is_passed || !is_here {
        return act(signal, place, info, context);
    }
    let now_ns = read_clock(ClockId::Monotonic).max(1);
    let pending = &PENDING_SINCE_NS[place];
    if let Err(since_ns) = pending.compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed) {
        // A user who sends a signal again does not want to wait.
        if now_ns.saturating_sub(since_ns) > SAME_NS {
            act(signal, place, info, context);
        }
        return;
    }
    // SAFETY: the place of this thread's error number, which the interrupted code may be about to
    // read.
    let errno = unsafe { errno_location().read() };
    // One of the two numbers.
    let number = signal as u8;
    // SAFETY: the byte is there. If the program has closed the descriptor, this fails.
    let sent = unsafe { send(SOCKET.load(Ordering::Relaxed), (&raw const number).cast(), 1, MSG_NOSIGNAL) };
    // SAFETY: as above.
    unsafe { errno_location().write(errno) };
    if sent != 1 {
        pending.store(0, Ordering::Relaxed);
        act(signal, place, info, context);
    }
}

/// Does what the signal did before.
fn act(signal: c_int, place: usize, info: *mut c_void, context: *mut c_void) {
    let Some(previous) = PREVIOUS[place].get() else { return };
    if is_by_default(place) {
        // A handler that was installed since has called this one, and decides.
        if is_ours(signal) {
            end_by(signal);
        }
        return;
    }
    if previous.is_once() {
        SPENT[place].store(true, Ordering::Relaxed);
    }
    previous.call(signal, info, context);
}

/// Returns the place of a signal in [`ENDING`].
fn place(signal: c_int) -> Option<usize> {
    ENDING.iter().position(|&ending| c_int::from(ending) == signal)
}

/// Returns whether the signal at this place ends the process, without this module.
fn is_by_default(place: usize) -> bool {
    PREVIOUS[place].get().is_some_and(Action::is_default) || SPENT[place].load(Ordering::Relaxed)
}

/// Returns whether the signal at this place ends the process, without this module and other copies
/// of it.
fn is_by_default_at_last(place: usize) -> bool {
    let previous = PREVIOUS[place].get().map_or(0, Action::address);
    is_by_default(place) || other_copies::chain(previous, place).last() == Some(0)
}

/// Returns whether no other handler has taken the place of this module's, except those of other
/// copies, which pass the signal on to this one.
fn is_ours(signal: c_int) -> bool {
    let Some((present, place)) = Action::of(signal).zip(place(signal)) else { return false };
    other_copies::chain(present.address(), place).any(|handler| handler == own_handler())
}
