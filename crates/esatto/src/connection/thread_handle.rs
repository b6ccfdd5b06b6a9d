//! The control thread as other threads see it: starting, commanding, stopping and pausing it.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::Duration;

use super::{Command, Control, Waker};
use crate::os::block_signals;
use crate::os::leaked::Leaked;
use crate::sys::threads::{self, Closed};

/// Name of the control thread.
const THREAD_NAME: &str = "esatto";

/// How long a fork waits for the control thread to come to a rest.
const PAUSE_PATIENCE: Duration = Duration::from_millis(200);

/// The other threads' end of the control thread. Never freed: whoever got hold of one may keep it.
pub(crate) struct Handle {
    commands: Arc<Commands>,
    thread: ThreadId,
    join: Mutex<Option<JoinHandle<()>>>,
}

/// Where commands wait, and how to wake who takes them; `None` when nobody will any more.
pub(super) struct Commands(Mutex<Option<Open>>);

struct Open {
    commands: Vec<Command>,
    waker: Waker,
}

/// See [`Commands::lock`].
struct Locked<'c> {
    open: MutexGuard<'c, Option<Open>>,
    _closed: Closed,
}

/// The control thread that runs.
static HANDLE: Leaked<Handle> = Leaked::none();

/// Keeps the control thread from being started and ended at the same time.
static CHANGING: Mutex<()> = Mutex::new(());

/// While this exists the control thread is neither started nor ended. The control thread itself gets `None`: it is there, and who ends it waits for it
/// with the lock.
fn unchanging() -> Option<MutexGuard<'static, ()>> {
    (!is_current_thread()).then(|| lock(&CHANGING))
}

impl Handle {
    /// Leaves a command. If the control thread has ended the command is dropped, and with it whatever somebody waits for.
    pub(crate) fn send(&self, command: Command) {
        // Dropped here, where no lock is held.
        let _ = self.try_send(command);
    }

    /// Leaves a command, or returns it if the control thread has ended.
    pub(crate) fn try_send(&self, command: Command) -> Option<Command> {
        let mut commands = self.commands.lock();
        let Some(open) = &mut *commands.open else { return Some(command) };
        open.commands.push(command);
        open.waker.wake();
        None
    }

    /// Lets the control thread look for work.
    pub(super) fn wake(&self) {
        if let Some(open) = &*self.commands.lock().open {
            open.waker.wake();
        }
    }
}

impl Commands {
    /// Those that have come since the last call.
    pub(super) fn take(&self) -> Vec<Command> {
        self.lock().open.as_mut().map(|open| core::mem::take(&mut open.commands)).unwrap_or_default()
    }

    /// No more are taken.
    pub(super) fn close(&self) {
        // Outside of the lock: whoever is dropped may send.
        let rest = self.lock().open.take();
        drop(rest);
    }

    /// Threads that trace are closed meanwhile: a new category is a command.
    fn lock(&self) -> Locked<'_> {
        let closed = threads::close();
        Locked { open: lock(&self.0), _closed: closed }
    }
}

/// The control thread, if it runs.
pub(crate) fn handle() -> Option<&'static Handle> {
    HANDLE.get()
}

/// The control thread, started now if it does not run. A function that the control thread calls while it ends gets the one that ends.
pub(crate) fn start() -> io::Result<&'static Handle> {
    let _unchanging = unchanging();
    if let Some(handle) = handle() {
        return Ok(handle);
    }
    crate::process::fork::watch();
    crate::process::shutdown::watch();
    let waker = Waker::new()?;
    let open = Open { commands: Vec::new(), waker: waker.clone() };
    let commands = Arc::new(Commands(Mutex::new(Some(open))));
    let mut control = Control::new(waker, Arc::clone(&commands));
    let run = move || {
        // Handlers may trace, and would wait for what this thread has locked.
        block_signals();
        control.run();
    };
    let join = spawn(THREAD_NAME, Box::new(run))?;
    let thread = join.thread().id();
    let handle: &'static Handle = Box::leak(Box::new(Handle { commands, thread, join: Mutex::new(Some(join)) }));
    HANDLE.set(Some(handle));
    Ok(handle)
}

/// Starts a thread. In a box, because the standard library makes more than a kilobyte of code for each kind of function.
pub(crate) fn spawn(name: &str, run: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(run)
}

/// Ends the control thread and waits for it. False if there is none, or this is it.
pub(crate) fn stop() -> bool {
    let Some(_unchanging) = unchanging() else { return false };
    let Some(handle) = handle() else { return false };
    handle.send(Command::Shutdown);
    let join = lock(&handle.join).take();
    // It catches the panics of those it calls; if it panicked all the same it is gone, too.
    let _ = join.map(JoinHandle::join);
    HANDLE.set(None);
    true
}

/// Whether this is the control thread, which must not wait for itself.
pub(crate) fn is_current_thread() -> bool {
    handle().is_some_and(|handle| handle.thread == thread::current().id())
}

/// Whether somebody wants the control thread to rest, and whether it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    No,
    Wanted,
    Taken,
}

static REST: Mutex<Rest> = Mutex::new(Rest::No);
static RESTED: Condvar = Condvar::new();

/// Rests if somebody wants that, and as long. On the control thread, between two pieces of work.
pub(super) fn rest_if_wanted() {
    let mut rest = lock(&REST);
    if *rest == Rest::No {
        return;
    }
    *rest = Rest::Taken;
    RESTED.notify_all();
    while *rest != Rest::No {
        rest = RESTED.wait(rest).unwrap_or_else(PoisonError::into_inner);
    }
}

/// The control thread does nothing as long as this exists, if it came to a rest in time.
#[derive(Debug)]
pub(crate) struct Pause {
    rest: Option<MutexGuard<'static, Rest>>,
    _unchanging: Option<MutexGuard<'static, ()>>,
}

/// Lets the control thread pause, so that nothing it has locked is locked.
pub(crate) fn pause() -> Pause {
    let unchanging = unchanging();
    // Itself it need not wait for.
    let Some(handle) = handle().filter(|_| unchanging.is_some()) else {
        return Pause { rest: None, _unchanging: unchanging };
    };
    let mut rest = lock(&REST);
    *rest = Rest::Wanted;
    handle.wake();
    let (rest, _) = RESTED
        .wait_timeout_while(rest, PAUSE_PATIENCE, |rest| *rest == Rest::Wanted)
        .unwrap_or_else(PoisonError::into_inner);
    Pause { rest: Some(rest), _unchanging: unchanging }
}

impl Pause {
    /// In the child of a fork: there is no control thread.
    pub(crate) fn forget_thread(&self) {
        HANDLE.set(None);
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        if let Some(mut rest) = self.rest.take() {
            *rest = Rest::No;
            drop(rest);
            RESTED.notify_all();
        }
    }
}

/// A panic elsewhere leaves nothing half done here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
