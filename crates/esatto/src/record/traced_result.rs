//! Results of traced functions.

/// Type of the results of functions with the option `err` of `#[esatto::trace]`.
///
/// The types of the value and the error are parameters. If they were associated types, the compiler
/// would report a wrong type twice.
#[diagnostic::on_unimplemented(
    message = "`err` of `#[esatto::trace]` needs a function that returns a `Result`, and this one returns `{Self}`",
    label = "there is no error to record: remove `err`, or use `ret` to record the value"
)]
pub trait TracedResult<T, E> {
    /// Returns the result.
    ///
    /// # Errors
    ///
    /// If it is an error.
    fn as_result(&self) -> Result<&T, &E>;
}

impl<T, E> TracedResult<T, E> for Result<T, E> {
    #[inline(always)]
    fn as_result(&self) -> Result<&T, &E> {
        self.as_ref()
    }
}

/// Returns a reference to the value or the error of a result.
///
/// # Errors
///
/// If the result is an error.
#[inline(always)]
pub fn as_result<T, E>(result: &impl TracedResult<T, E>) -> Result<&T, &E> {
    result.as_result()
}
