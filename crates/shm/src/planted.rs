//! Bugs that are planted to see whether the simulator finds them (`tests/sim`).
//!
//! `planted!("name")` stands where the bug is. It is the constant `false`, and what depends on it compiles away, unless the program
//! is built with `--cfg esatto_planted`; even then a bug is asleep until [`plant`] names it, for the thread that does.

/// Whether the bug of this name is awake.
#[doc(hidden)]
#[macro_export]
macro_rules! planted {
    ($name:literal) => {
        cfg!(esatto_planted) && $crate::planted::is_awake($name)
    };
}

std::thread_local! {
    static AWAKE: core::cell::Cell<&'static str> = const { core::cell::Cell::new("") };
}

/// Wakes the bug of this name in this thread, and lets all others sleep; the empty name is none.
pub fn plant(name: &'static str) {
    AWAKE.with(|awake| awake.set(name));
}

/// What `planted!` asks; never true without `--cfg esatto_planted`.
pub fn is_awake(name: &str) -> bool {
    AWAKE.with(|awake| awake.get() == name)
}
