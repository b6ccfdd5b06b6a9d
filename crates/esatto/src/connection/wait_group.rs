//! Waits for a number of answers: a minimal channel, in little code.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The answering end. Clones give further answers. A clone that is dropped gives none.
pub(crate) struct Answer(Arc<Shared>);

/// The waiting end.
pub(crate) struct Answers(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The number of live [`Answer`]s.
    open: usize,
    answered: bool,
}

/// Makes one end to answer and one to wait.
pub(crate) fn answers() -> (Answer, Answers) {
    let shared = Arc::<Shared>::default();
    (Answer::of(&shared), Answers(shared))
}

impl Answer {
    fn of(shared: &Arc<Shared>) -> Self {
        shared.lock().open += 1;
        Self(Arc::clone(shared))
    }

    /// Answers.
    pub(crate) fn give(self) {
        self.0.lock().answered = true;
    }
}

impl Clone for Answer {
    fn clone(&self) -> Self {
        Self::of(&self.0)
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.open -= 1;
        if state.open == 0 {
            self.0.changed.notify_all();
        }
    }
}

impl Answers {
    /// Waits until all have answered or were dropped, and returns whether one has answered; `None`:
    /// not in time.
    pub(crate) fn wait(self, timeout: Duration) -> Option<bool> {
        let waited = self.0.changed.wait_timeout_while(self.0.lock(), timeout, |state| state.open > 0);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (state.open == 0).then_some(state.answered)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn waiting_ends_with_the_last_answer() {
        let (answer, answers) = answers();
        let other = answer.clone();
        let waiting = std::thread::spawn(move || answers.wait(Duration::MAX));
        answer.give();
        drop(other);
        assert_eq!(waiting.join().ok(), Some(Some(true)));
    }

    #[test]
    fn dropped_answers_do_not_count_and_open_ones_time_out() {
        let (answer, answers) = answers();
        drop(answer);
        assert_eq!(answers.wait(NOW), Some(false));
        let (answer, answers) = super::answers();
        assert_eq!(answers.wait(NOW), None);
        answer.give();
    }
}
