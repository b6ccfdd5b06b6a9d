//! [`ThreadPriority`]: priority of a thread while sessions raise it (`priority_boost`,
//! `docs/spec/service.md` §26).
//!
//! Threads that the thread starts meanwhile inherit it.

use std::io;

use rustix::process::{getpriority_process, setpriority_process};
use thread_priority::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadPriority as Level, ThreadPriorityValue,
    ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id, thread_schedule_policy_param,
};

/// A priority that sessions ask for, ordered by strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PriorityBoost {
    /// `SCHED_OTHER` with this much below nice 0: 0 to 20.
    Other(u8),
    /// `SCHED_FIFO` with this priority: 1 to 99.
    Fifo(u8),
}

/// The priority of the calling thread.
#[derive(Debug, Default)]
pub struct ThreadPriority {
    /// Scheduling before the first boost.
    at_first: Option<Scheduling>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scheduling {
    policy: ThreadSchedulePolicy,
    /// Priority within a real-time policy.
    priority: i32,
    nice: i32,
}

impl ThreadPriority {
    /// Raises the priority of the calling thread, or restores the original one. All calls must come
    /// from the same thread.
    ///
    /// # Errors
    ///
    /// A text for the user: the system does not allow the change.
    pub fn set(&mut self, boost: Option<PriorityBoost>) -> Result<(), String> {
        let at_first = match self.at_first {
            Some(at_first) => at_first,
            None => *self.at_first.insert(current()?),
        };
        apply(match boost {
            None => at_first,
            Some(PriorityBoost::Other(below)) => Scheduling {
                policy: ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other),
                priority: 0,
                // If the thread has a higher priority from its start, it keeps it.
                nice: at_first.nice.min(-i32::from(below)),
            },
            Some(PriorityBoost::Fifo(priority)) => Scheduling {
                policy: ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo),
                priority: priority.into(),
                nice: at_first.nice,
            },
        })
    }
}

fn current() -> Result<Scheduling, String> {
    let (policy, params) = thread_schedule_policy_param(thread_native_id()).map_err(|e| text(&e))?;
    let nice = getpriority_process(None).map_err(|e| format!("getpriority: {}", io::Error::from(e)))?;
    Ok(Scheduling { policy, priority: params.sched_priority, nice })
}

fn apply(wanted: Scheduling) -> Result<(), String> {
    let thread = thread_native_id();
    match wanted.policy {
        ThreadSchedulePolicy::Realtime(_) => {
            let priority = u8::try_from(wanted.priority).ok().and_then(|p| ThreadPriorityValue::try_from(p).ok());
            let priority = priority.ok_or_else(|| format!("there is no priority {}", wanted.priority))?;
            set_thread_priority_and_policy(thread, Level::Crossplatform(priority), wanted.policy).map_err(|e| text(&e))
        }
        ThreadSchedulePolicy::Normal(_) => {
            if current()?.policy != wanted.policy {
                // The call sets a nice value along with the policy. The lowest one is always
                // allowed, and is then replaced.
                set_thread_priority_and_policy(thread, Level::Min, wanted.policy).map_err(|e| text(&e))?;
            }
            // On Linux, this changes only the calling thread.
            setpriority_process(None, wanted.nice)
                .map_err(|e| format!("setpriority to {}: {}", wanted.nice, io::Error::from(e)))
        }
    }
}

fn text(error: &thread_priority::Error) -> String {
    match error {
        thread_priority::Error::OS(code) => format!("sched_setscheduler: {}", io::Error::from_raw_os_error(*code)),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies `boosts` one after the other, in a separate thread. Returns an error where the
    /// system does not allow one.
    fn scheduled(boosts: &[Option<PriorityBoost>]) -> Vec<Result<(bool, i32, i32), String>> {
        let boosts = boosts.to_vec();
        let body = move || {
            let mut priority = ThreadPriority::default();
            let mut set = |boost| {
                priority.set(boost)?;
                let now = current()?;
                Ok((matches!(now.policy, ThreadSchedulePolicy::Realtime(_)), now.priority, now.nice))
            };
            boosts.into_iter().map(&mut set).collect()
        };
        std::thread::spawn(body).join().unwrap()
    }

    #[test]
    fn boosts_hold_until_the_priority_is_given_back() {
        let before = getpriority_process(None).unwrap();
        let boosts =
            [PriorityBoost::Other(0), PriorityBoost::Other(7), PriorityBoost::Fifo(3), PriorityBoost::Other(1)];
        let wanted: Vec<_> = boosts.into_iter().map(Some).chain([None]).collect();
        let seen = scheduled(&wanted);
        let expected = [
            (false, 0, before.min(0)),
            (false, 0, before.min(-7)),
            (true, 3, before),
            (false, 0, before.min(-1)),
            (false, 0, before),
        ];
        for (seen, expected) in seen.into_iter().zip(expected) {
            match seen {
                Ok((true, priority, _)) => assert_eq!((true, priority), (expected.0, expected.1)),
                Ok(seen) => assert_eq!(seen, expected),
                // Without CAP_SYS_NICE, the text names the missing permission.
                Err(error) => assert!(error.contains("denied") || error.contains("not permitted"), "{error}"),
            }
        }
    }

    #[test]
    fn an_invalid_priority_is_an_error() {
        assert!(scheduled(&[Some(PriorityBoost::Fifo(100))])[0].is_err());
    }
}
