//! A bound on the patterns of one config together.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use super::ecmascript::EcmaScript;
use super::{Regex, RegexEngine, Span};
use crate::Error;

type Compiled = Arc<dyn Regex>;

/// [`EcmaScript`] for patterns that a stranger sends together: their memory is bounded, and a
/// pattern that comes again is not compiled again.
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
    /// By pattern, and whether it is for whole texts.
    compiled: RefCell<HashMap<(Vec<u8>, bool), Compiled>>,
}

impl PatternQuota {
    /// Bytes that the compiled patterns of one config may take together. Those beyond are refused,
    /// and the config with them.
    pub const MAX_COMPILED_TOGETHER: usize = 4 * 1024 * 1024;

    /// What a pattern is charged: the smallest of these that it fits into. The engine does not tell
    /// its exact size.
    const SIZES: [usize; 4] = [2 * 1024, 8 * 1024, 64 * 1024, EcmaScript::MAX_COMPILED];

    /// What it is charged at least.
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
        // Lookaround and back references cut a pattern into parts, which are compiled one by one,
        // and twice.
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
