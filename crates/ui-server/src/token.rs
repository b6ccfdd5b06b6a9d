//! Secrets in paths, which nobody can guess.

use core::fmt::{self, Write as _};

use rustix::rand::{GetRandomFlags, getrandom};
use subtle::ConstantTimeEq as _;

use crate::Error;

/// Random bytes of a token.
const BYTES: usize = 16;

/// A random word of 32 hexadecimal digits.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Makes a token.
    ///
    /// # Errors
    ///
    /// The system has no random bytes.
    pub fn random() -> Result<Self, Error> {
        let mut text = String::with_capacity(2 * BYTES);
        for byte in random_bytes::<BYTES>()? {
            write!(text, "{byte:02x}").expect("a String takes all");
        }
        Ok(Self(text))
    }

    /// Returns whether `word` is this token. The time does not depend on where they differ.
    #[must_use]
    pub fn is(&self, word: &str) -> bool {
        bool::from(self.0.as_bytes().ct_eq(word.as_bytes()))
    }

    /// The token as text, for an address.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Returns random bytes.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        filled +=
            getrandom(&mut bytes[filled..], GetRandomFlags::empty()).map_err(|error| Error::Random(error.into()))?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_only_itself() {
        let [a, b] = [Token::random().unwrap(), Token::random().unwrap()];
        assert_eq!(a.as_str().len(), 32);
        assert!(a.is(a.as_str()) && !a.is(b.as_str()) && !a.is("") && !a.is(&a.as_str()[1..]));
        assert_eq!(format!("{a:?}"), "Token(…)");
    }
}
