//! The handle of the control thread: other threads start, command, stop and pause it.

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use esatto_instances::ThreadGate as _;

use super::mailbox::Mailbox;
use super::pause::Pause;
use super::thread::{Command, Control};
use super::wait_group::answers;
use crate::control_thread::{self, Entry};
use crate::data_source;
use crate::os::leaked::Leaked;
use crate::os::{OwnedFd, Waker, block_signals, spawn};
use crate::trace_point_gate::Gate;

/// The name of the control thread.
const THREAD_NAME: &str = "esatto";

/// The other threads' end of the control thread. Never freed, because any thread may keep a
/// reference.
pub(crate) struct Handle {
    commands: Arc<Mailbox<Command>>,
    /// That of [`OWN_NUMBER`] on the control thread.
    number: u32,
    join: Mutex<Option<JoinHandle<()>>>,
}

thread_local! {
    /// On each control thread: its number in the process, from 1.
    static OWN_NUMBER: Cell<u32> = const { Cell::new(0) };
}

/// The running control thread.
static HANDLE: Leaked<Handle> = Leaked::none();

/// Keeps the control thread from being started and ended at the same time.
static CHANGING: Mutex<()> = Mutex::new(());

/// Returns a guard. While it lives, the control thread does not start or end. Returns `None` on the
/// control thread: it runs, and a thread that ends it waits for it with the lock held.
fn unchanging() -> Option<MutexGuard<'static, ()>> {
    (!is_current_thread()).then(|| lock(&CHANGING))
}

impl Handle {
    /// Leaves a command. If the control thread has ended, the command is dropped, and pending
    /// operations in it fail.
    pub(crate) fn send(&self, command: Command) {
        // Dropped here, where no lock is held.
        let _ = self.try_send(command);
    }

    /// Leaves a command, or returns it if the control thread has ended.
    fn try_send(&self, command: Command) -> Option<Command> {
        self.commands.try_send(command)
    }

    fn wake(&self) {
        self.commands.wake();
    }
}

/// Returns the control thread, if it runs.
pub(crate) fn handle() -> Option<&'static Handle> {
    HANDLE.get()
}

/// Returns the control thread, and starts it if it does not run. A function that the control thread
/// calls while it ends gets the ending one.
pub(crate) fn start() -> io::Result<&'static Handle> {
    let _unchanging = unchanging();
    if let Some(handle) = handle() {
        return Ok(handle);
    }
    serve_rooms_below();
    let waker = Waker::new()?;
    let commands = Arc::new(Mailbox::new(waker.clone()));
    let mut control = Control::new(waker, Arc::clone(&commands));
    static NUMBERS: AtomicU32 = AtomicU32::new(0);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed) + 1;
    let run = move || {
        OWN_NUMBER.set(number);
        // A handler that traces would wait for the locks of this thread, and so would an allocator.
        block_signals();
        let _closed = Gate::close();
        control.run();
    };
    let join = spawn(THREAD_NAME, Box::new(run))?;
    let handle: &'static Handle = Box::leak(Box::new(Handle { commands, number, join: Mutex::new(Some(join)) }));
    HANDLE.set(Some(handle));
    Ok(handle)
}

/// Lets the rooms below this one reach the control thread.
fn serve_rooms_below() {
    control_thread::set_entry(Entry {
        is_current: is_current_thread,
        wake: || {
            if let Some(handle) = handle() {
                handle.wake();
            }
        },
        run: |function| match handle() {
            Some(handle) => handle.send(Command::Run(function)),
            None => function(),
        },
        await_services,
    });
    data_source::send_completions_by(|completion| {
        let Some(handle) = handle() else { return Some(completion) };
        match handle.try_send(Command::Completed(completion)) {
            Some(Command::Completed(completion)) => Some(completion),
            _ => None,
        }
    });
}

/// See [`control_thread::await_services`].
fn await_services(timeout: Duration) -> Option<bool> {
    let handle = handle()?;
    let (answer, answers) = answers();
    handle.send(Command::With(Box::new(move |control| control.sync(&answer))));
    answers.wait(timeout)
}

/// Hands the socket that was asked for under a number to its connection; `None` if there is no
/// socket.
pub(crate) fn deliver_socket(number: u64, socket: Option<OwnedFd>) {
    if let Some(handle) = handle() {
        handle.send(Command::With(Box::new(move |control| control.deliver(number, socket))));
    }
}

/// Ends the control thread and waits for it. Returns false if there is none, or if this is it.
pub(crate) fn stop() -> bool {
    let Some(_unchanging) = unchanging() else { return false };
    let Some(handle) = handle() else { return false };
    handle.send(Command::Shutdown);
    let join = lock(&handle.join).take();
    // It catches the panics of functions that it calls. If it still panicked, it has also ended.
    let _ = join.map(JoinHandle::join);
    HANDLE.set(None);
    true
}

/// Returns whether this is the control thread, which must not wait for itself.
fn is_current_thread() -> bool {
    handle().is_some_and(|handle| handle.number == OWN_NUMBER.get())
}

/// Pauses the control thread while the process forks.
pub(crate) fn pause() -> Pause {
    let unchanging = unchanging();
    // The control thread need not wait for itself.
    let handle = handle().filter(|_| unchanging.is_some());
    Pause::begin(unchanging, handle.map(|handle| || handle.wake()))
}

/// Forgets the control thread, in the child of a fork, which has none.
pub(crate) fn forget_thread() {
    HANDLE.set(None);
}

/// Locks. A panic elsewhere leaves nothing half done here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
