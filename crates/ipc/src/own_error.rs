//! [`OwnError`]: the error that a reply of other bindings carries.

/// Reply that is an error of the program, in the form of the bindings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnError {
    /// The error, if it is a number.
    pub value: Option<i64>,
}
