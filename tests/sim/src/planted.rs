//! The bugs that are planted in the service and in shared memory (`planted!` there), and the seeds that are known to find them.

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planted {
    /// What `planted!` calls it.
    pub name: &'static str,
    /// What it does wrong.
    pub what: &'static str,
    /// The first seed that finds it.
    pub found_by: u64,
}

macro_rules! planted {
    ($($name:literal $seed:literal: $what:literal,)*) => {
        /// All of them.
        pub const ALL: &[Planted] = &[$(Planted { name: $name, what: $what, found_by: $seed },)*];
    };
}

planted! {
    "double-reply-flush" 1: "a flush that succeeds is answered twice",
}

/// The bug of this name.
pub fn named(name: &str) -> Option<&'static Planted> {
    ALL.iter().find(|bug| bug.name == name)
}

/// Whether this program was built so that bugs can be woken; says so if not.
pub fn can_be_woken() -> bool {
    if !cfg!(esatto_planted) {
        eprintln!("the planted bugs need --cfg esatto_planted: cargo xtask sim");
    }
    cfg!(esatto_planted)
}
