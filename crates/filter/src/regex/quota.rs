//! [`PatternQuota`]: a bound on all patterns of one config together.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use super::ecmascript::EcmaScript;
use super::{Regex, RegexEngine, Span};
use crate::Error;

type Compiled = Arc<dyn Regex>;

/// [`EcmaScript`] for the patterns of one config from a stranger. Their memory is bounded, and a
/// repeated pattern is compiled only once.
///
/// ```
/// use esatto_filter::{PatternQuota, RegexEngine, Span};
///
/// let quota = PatternQuota::default();
/// assert!(quota.compile(b"com\\.example\\..*", Span::Whole).is_ok());
/// let many = (0..1000).find_map(|i| quota.compile(format!("{i}.*").as_bytes(), Span::Whole).err());
/// assert!(many.is_some_and(|error| error.to_string().contains("together")));
/// ```
#[derive(Debug)]
pub struct PatternQuota {
    bytes_left: Cell<usize>,
    /// Compiled patterns, by pattern and extent.
    compiled: RefCell<HashMap<(Vec<u8>, bool), Compiled>>,
}

impl PatternQuota {
    /// Largest size of all compiled patterns of one config in bytes. Further patterns are refused,
    /// and the config with them.
    pub const MAX_COMPILED_TOGETHER: usize = 4 * 1024 * 1024;

    /// Sizes that a pattern can be charged: the smallest one that it fits into. The engine does not
    /// report its exact size.
    const SIZES: [usize; 4] = [2 * 1024, 8 * 1024, 64 * 1024, EcmaScript::MAX_COMPILED];

    /// Smallest charge.
    const MIN_CHARGE: usize = 8 * 1024;
}

impl Default for PatternQuota {
    fn default() -> Self {
        Self { bytes_left: Cell::new(Self::MAX_COMPILED_TOGETHER), compiled: RefCell::default() }
    }
}

impl RegexEngine for PatternQuota {
    fn compile(&self, pattern: &[u8], span: Span) -> Result<Arc<dyn Regex>, Error> {
        let key = (pattern.to_vec(), span == Span::Whole);
        if let Some(regex) = self.compiled.borrow().get(&key) {
            return Ok(Arc::clone(regex));
        }
        // Lookaround and back references divide a pattern into parts. Each part is compiled
        // separately, and twice.
        let parts = 1 + pattern.iter().filter(|byte| b"(\\".contains(byte)).count();
        let mut result = EcmaScript::compile_within(pattern, span, Self::SIZES[0]);
        let mut size = Self::SIZES[0];
        for larger in &Self::SIZES[1..] {
            if result.is_err() {
                size = *larger;
                result = EcmaScript::compile_within(pattern, span, size);
            }
        }
        let (regex, backtracks) = result?;
        let size = size.max(Self::MIN_CHARGE);
        let charge = if backtracks { 2 * parts * size } else { size };
        let left = self.bytes_left.get().checked_sub(charge);
        self.bytes_left.set(left.ok_or(Error::PatternsTooLarge { max: Self::MAX_COMPILED_TOGETHER })?);
        self.compiled.borrow_mut().insert(key, Arc::clone(&regex));
        Ok(regex)
    }
}
