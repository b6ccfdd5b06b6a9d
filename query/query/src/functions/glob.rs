//! `glob(pattern, text)` and the operator `GLOB`, as in SQLite.

use std::sync::Arc;

use arrow::array::{AsArray as _, BooleanArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, Like, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility, lit,
};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Glob(Signature);

impl Glob {
    pub(super) fn new() -> Self {
        Self(Signature::new(TypeSignature::Any(2), Volatility::Immutable))
    }
}

impl ScalarUDFImpl for Glob {
    fn name(&self) -> &str {
        "glob"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn simplify(&self, mut args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let pattern = match &args[0] {
            Expr::Literal(pattern, _) => pattern.try_as_str().flatten().and_then(as_like),
            _ => None,
        };
        // Types are not coerced any more.
        let pattern = match (info.get_data_type(&args[1])?, pattern) {
            (DataType::Utf8, Some(pattern)) => ScalarValue::Utf8(Some(pattern)),
            (DataType::Utf8View, Some(pattern)) => ScalarValue::Utf8View(Some(pattern)),
            _ => return Ok(ExprSimplifyResult::Original(args)),
        };
        // Files have statistics for a comparison, and engines elsewhere know it.
        let like = Like::new(false, Box::new(args.remove(1)), Box::new(lit(pattern)), None, false);
        Ok(ExprSimplifyResult::Simplified(Expr::Like(like)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let texts = cast(&args.args[1].to_array(rows)?, &DataType::Utf8View)?;
        let texts = texts.as_string_view();
        let found: BooleanArray = match &args.args[0] {
            ColumnarValue::Scalar(pattern) => {
                let pattern = match pattern.cast_to(&DataType::Utf8)? {
                    ScalarValue::Utf8(Some(pattern)) => Pattern::new(&pattern),
                    _ => return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(None))),
                };
                texts.iter().map(|text| text.map(|text| pattern.fits(text))).collect()
            }
            ColumnarValue::Array(patterns) => {
                let patterns = cast(patterns, &DataType::Utf8View)?;
                let pairs = patterns.as_string_view().iter().zip(texts);
                pairs.map(|(pattern, text)| Some(Pattern::new(pattern?).fits(text?))).collect()
            }
        };
        Ok(ColumnarValue::Array(Arc::new(found)))
    }
}

/// Returns a pattern of LIKE that fits the same texts; `None` if there is none.
fn as_like(pattern: &str) -> Option<String> {
    if pattern.contains(['%', '_', '\\', '[']) {
        return None;
    }
    Some(pattern.replace('*', "%").replace('?', "_"))
}

#[derive(Debug, PartialEq)]
enum Part {
    Char(char),
    AnyChar,
    Any,
    Set {
        ranges: Vec<(char, char)>,
        is_negated: bool,
    },
    /// A set without an end fits nothing.
    Never,
}

#[derive(Debug)]
pub(super) struct Pattern(Vec<Part>);

impl Pattern {
    pub(super) fn new(pattern: &str) -> Self {
        let chars: Vec<char> = pattern.chars().collect();
        let (mut parts, mut at) = (Vec::new(), 0);
        while let Some(&ch) = chars.get(at) {
            at += 1;
            parts.push(match ch {
                '*' if parts.last() == Some(&Part::Any) => continue,
                '*' => Part::Any,
                '?' => Part::AnyChar,
                '[' => set(&chars, &mut at),
                ch => Part::Char(ch),
            });
        }
        Self(parts)
    }

    /// Returns whether a text fits. It costs at most the product of both lengths.
    pub(super) fn fits(&self, text: &str) -> bool {
        let mut rest = text.chars();
        let mut part = 0;
        // Where to continue if a part does not fit: after the last `*`, one character later.
        let mut retry: Option<(usize, core::str::Chars<'_>)> = None;
        loop {
            let before = rest.clone();
            match self.0.get(part) {
                Some(Part::Any) => {
                    part += 1;
                    if part == self.0.len() {
                        return true;
                    }
                    retry = Some((part, before));
                    continue;
                }
                None if rest.as_str().is_empty() => return true,
                Some(one) if rest.next().is_some_and(|ch| one.fits(ch)) => {
                    part += 1;
                    continue;
                }
                _ => {}
            }
            let Some((start, from)) = &mut retry else { return false };
            if from.next().is_none() {
                return false;
            }
            (part, rest) = (*start, from.clone());
        }
    }
}

impl Part {
    fn fits(&self, ch: char) -> bool {
        match self {
            Self::Char(own) => *own == ch,
            Self::AnyChar => true,
            Self::Set { ranges, is_negated } => {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&ch)) != *is_negated
            }
            Self::Any | Self::Never => false,
        }
    }
}

fn set(chars: &[char], at: &mut usize) -> Part {
    let is_negated = chars.get(*at) == Some(&'^');
    *at += usize::from(is_negated);
    let mut ranges = Vec::new();
    let start = *at;
    loop {
        let Some(&ch) = chars.get(*at) else { return Part::Never };
        // A bracket that comes first is a member.
        if ch == ']' && *at > start {
            *at += 1;
            return Part::Set { ranges, is_negated };
        }
        let last = match (chars.get(*at + 1), chars.get(*at + 2)) {
            (Some('-'), Some(&last)) if last != ']' => {
                *at += 2;
                last
            }
            _ => ch,
        };
        ranges.push((ch, last));
        *at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_in_sqlite() {
        // Pattern, texts that fit, texts that do not.
        let cases: [(&str, &[&str], &[&str]); 10] = [
            ("", &[""], &["a"]),
            ("*", &["", "a", "é*"], &[]),
            ("a*b", &["ab", "axxb", "abab"], &["a", "abc", "xab"]),
            ("*a*b*", &["ab", "xaybz"], &["ba", ""]),
            ("a?c", &["abc", "aéc"], &["ac", "abbc"]),
            ("[a-c]x", &["ax", "cx"], &["dx", "x", "-x"]),
            ("[^a-c]x", &["dx", "-x"], &["ax", "x"]),
            ("[]]", &["]"], &["[", ""]),
            ("[a-", &[], &["a", "[a-", ""]),
            ("ABC", &["ABC"], &["abc"]),
        ];
        for (pattern, fit, others) in cases {
            let compiled = Pattern::new(pattern);
            assert!(fit.iter().all(|text| compiled.fits(text)), "{pattern}: {fit:?}");
            assert!(!others.iter().any(|text| compiled.fits(text)), "{pattern}: {others:?}");
        }
    }

    #[test]
    fn patterns_with_many_stars_take_no_exponential_time() {
        let pattern = Pattern::new(&"*a".repeat(1000));
        assert!(!pattern.fits(&"a".repeat(999)));
        assert!(!Pattern::new(&format!("{}b", "*a*".repeat(50))).fits(&"a".repeat(2000)));
    }
}
