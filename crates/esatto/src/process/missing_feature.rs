//! Methods of the feature `in-process` in programs without it: their calls do not compile, and the
//! compiler names the feature.

use super::Builder;

/// The feature `in-process`, which no type has here.
#[diagnostic::on_unimplemented(
    message = "this method needs the feature `in-process` of the crate `esatto`",
    label = "the feature `in-process` is off",
    note = "add it in Cargo.toml: `esatto = {{ …, features = [\"in-process\"] }}`; it is on by default"
)]
pub trait InProcessFeature<'a> {}

// The lifetime makes the compiler check the condition at the call.
impl Builder {
    #[doc(hidden)]
    pub fn in_process(self) -> Self
    where
        for<'a> Self: InProcessFeature<'a>,
    {
        self
    }

    #[doc(hidden)]
    pub fn file_from_env(self) -> Self
    where
        for<'a> Self: InProcessFeature<'a>,
    {
        self
    }
}
