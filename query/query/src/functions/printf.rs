//! `printf(format, …)`, with the conversions of SQLite that queries use.

use core::fmt::Write as _;
use std::sync::Arc;

use arrow::array::StringViewArray;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Printf(Signature);

impl Printf {
    pub(super) fn new() -> Self {
        Self(Signature::variadic_any(Volatility::Immutable))
    }
}

impl ScalarUDFImpl for Printf {
    fn name(&self) -> &str {
        "printf"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        if args.is_empty() {
            return plan_err!("printf needs a format");
        }
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let arrays = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let mut texts = Vec::with_capacity(rows);
        for row in 0..rows {
            let values =
                arrays.iter().map(|array| ScalarValue::try_from_array(array, row)).collect::<Result<Vec<_>>>()?;
            let format = text(&values[0]);
            texts.push(format.map(|pattern| format_values(&pattern, &values[1..])));
        }
        Ok(ColumnarValue::Array(Arc::new(StringViewArray::from_iter(texts))))
    }
}

/// Widths and precisions are limited: a text of a trace can be a format.
const MAX_WIDTH: usize = 1000;

#[derive(Debug, Default)]
struct Conversion {
    is_left: bool,
    has_zeros: bool,
    has_plus: bool,
    has_space: bool,
    has_commas: bool,
    is_alternate: bool,
    width: usize,
    precision: Option<usize>,
}

fn format_values(format: &str, values: &[ScalarValue]) -> String {
    let (mut out, mut values) = (String::new(), values.iter());
    let mut rest = format.chars().peekable();
    while let Some(ch) = rest.next() {
        if ch != '%' {
            out.push(ch);
            continue;
        }
        let mut conversion = Conversion::default();
        loop {
            match rest.peek() {
                Some('-') => conversion.is_left = true,
                Some('0') => conversion.has_zeros = true,
                Some('+') => conversion.has_plus = true,
                Some(' ') => conversion.has_space = true,
                Some(',') => conversion.has_commas = true,
                Some('#') => conversion.is_alternate = true,
                _ => break,
            }
            let _flag = rest.next();
        }
        conversion.width = size(&mut rest, &mut values).unwrap_or(0);
        if rest.next_if_eq(&'.').is_some() {
            conversion.precision = Some(size(&mut rest, &mut values).unwrap_or(0));
        }
        while rest.next_if(|ch| matches!(ch, 'l' | 'h')).is_some() {}
        match rest.next() {
            Some('%') => out.push('%'),
            Some(kind) => {
                let value = values.next().unwrap_or(&ScalarValue::Null);
                match conversion.format(kind, value) {
                    Some(text) => conversion.pad(&text, kind, &mut out),
                    // SQLite stops at a conversion that it does not know.
                    None => return out,
                }
            }
            None => {}
        }
    }
    out
}

fn size<'v>(
    rest: &mut core::iter::Peekable<core::str::Chars<'_>>,
    values: &mut impl Iterator<Item = &'v ScalarValue>,
) -> Option<usize> {
    if rest.next_if_eq(&'*').is_some() {
        let value = values.next().map_or(0, int);
        return Some(usize::try_from(value).unwrap_or(0).min(MAX_WIDTH));
    }
    let mut number = None;
    while let Some(digit) = rest.peek().and_then(|ch| ch.to_digit(10)) {
        let before: usize = number.unwrap_or(0);
        number = Some((before * 10 + digit as usize).min(MAX_WIDTH));
        let _digit = rest.next();
    }
    number
}

impl Conversion {
    fn format(&self, kind: char, value: &ScalarValue) -> Option<String> {
        Some(match kind {
            'd' | 'i' => self.sign(int(value) < 0, self.group(&int(value).unsigned_abs().to_string())),
            'u' => self.group(&int(value).cast_unsigned().to_string()),
            'x' if self.is_alternate => format!("{:#x}", int(value)),
            'x' => format!("{:x}", int(value)),
            'X' if self.is_alternate => format!("{:#X}", int(value)),
            'X' => format!("{:X}", int(value)),
            'o' => format!("{:o}", int(value)),
            'f' | 'F' => {
                let number = real(value);
                let digits = format!("{:.*}", self.precision.unwrap_or(6), number.abs());
                let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
                self.sign(number.is_sign_negative(), format!("{}{fraction}", self.group(whole)))
            }
            'e' | 'E' => {
                let number = real(value);
                let text = exponential(number.abs(), self.precision.unwrap_or(6));
                self.sign(number.is_sign_negative(), if kind == 'E' { text.to_uppercase() } else { text })
            }
            'g' | 'G' => {
                let number = real(value);
                self.sign(number.is_sign_negative(), general(number.abs(), self.precision.unwrap_or(6).max(1)))
            }
            's' | 'z' => {
                let text = text(value).unwrap_or_default();
                match self.precision {
                    Some(length) => text.chars().take(length).collect(),
                    None => text,
                }
            }
            'c' => text(value).and_then(|text| text.chars().next()).map(String::from).unwrap_or_default(),
            'q' => text(value).map_or_else(|| "(NULL)".to_owned(), |text| text.replace('\'', "''")),
            'Q' => text(value).map_or_else(|| "NULL".to_owned(), |text| format!("'{}'", text.replace('\'', "''"))),
            _ => return None,
        })
    }

    fn sign(&self, is_negative: bool, digits: String) -> String {
        match (is_negative, self.has_plus, self.has_space) {
            (true, ..) => format!("-{digits}"),
            (false, true, _) => format!("+{digits}"),
            (false, false, true) => format!(" {digits}"),
            _ => digits,
        }
    }

    fn group(&self, digits: &str) -> String {
        if !self.has_commas {
            return digits.to_owned();
        }
        let mut grouped = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        grouped
    }

    fn pad(&self, text: &str, kind: char, out: &mut String) {
        let missing = self.width.saturating_sub(text.chars().count());
        let is_number = matches!(kind, 'd' | 'i' | 'u' | 'x' | 'X' | 'o' | 'f' | 'F' | 'e' | 'E' | 'g' | 'G');
        if self.is_left {
            out.push_str(text);
            out.extend(core::iter::repeat_n(' ', missing));
        } else if self.has_zeros && is_number {
            let sign = text.len() - text.trim_start_matches(['-', '+', ' ']).len();
            let (sign, digits) = text.split_at(sign);
            let _infallible = write!(out, "{sign}{}{digits}", "0".repeat(missing));
        } else {
            out.extend(core::iter::repeat_n(' ', missing));
            out.push_str(text);
        }
    }
}

/// Formats as C does: an exponent has a sign and two digits at least.
fn exponential(number: f64, precision: usize) -> String {
    let text = format!("{number:.precision$e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

fn general(number: f64, precision: usize) -> String {
    let text = exponential(number, precision - 1);
    let exponent: i32 = text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let without_zeros = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    let digits = i32::try_from(precision).unwrap_or(i32::MAX);
    if exponent < -4 || exponent >= digits {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "+00"));
        return format!("{}e{exponent}", without_zeros(mantissa));
    }
    let decimals = usize::try_from(digits - 1 - exponent).unwrap_or(0);
    without_zeros(&format!("{number:.decimals$}"))
}

fn int(value: &ScalarValue) -> i64 {
    match value.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(Some(number))) => number,
        _ => text(value).and_then(|text| text.trim().parse().ok()).unwrap_or(0),
    }
}

fn real(value: &ScalarValue) -> f64 {
    match value.cast_to(&DataType::Float64) {
        Ok(ScalarValue::Float64(Some(number))) => number,
        _ => 0.0,
    }
}

fn text(value: &ScalarValue) -> Option<String> {
    match value.cast_to(&DataType::Utf8) {
        Ok(ScalarValue::Utf8(text)) => text,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_are_those_of_sqlite() {
        let int = |value: i64| ScalarValue::from(value);
        let cases: [(&str, Vec<ScalarValue>, &str); 14] = [
            ("%d of %s", vec![int(-7), ScalarValue::from("x")], "-7 of x"),
            ("%5d|%-5d|%05d", vec![int(42), int(42), int(-42)], "   42|42   |-0042"),
            ("%,d", vec![int(1_234_567)], "1,234,567"),
            ("%.2f", vec![ScalarValue::from(2.346)], "2.35"),
            ("%f", vec![int(3)], "3.000000"),
            ("%x %X %#x", vec![int(255), int(255), int(16)], "ff FF 0x10"),
            ("100%%", vec![], "100%"),
            ("%s|%d", vec![], "|0"),
            ("%q %Q", vec![ScalarValue::from("it's"), ScalarValue::Null], "it''s NULL"),
            ("%.3s", vec![ScalarValue::from("abcdef")], "abc"),
            (
                "%g %g %g",
                vec![ScalarValue::from(0.00001), ScalarValue::from(1e9), ScalarValue::from(1.5)],
                "1e-05 1e+09 1.5",
            ),
            ("%e", vec![ScalarValue::from(12345.678)], "1.234568e+04"),
            ("%*d", vec![int(4), int(7)], "   7"),
            ("%", vec![], ""),
        ];
        for (format, values, expected) in cases {
            assert_eq!(format_values(format, &values), expected, "{format}");
        }
    }

    #[test]
    fn widths_are_limited() {
        assert_eq!(format_values("%99999999999999999999d", &[ScalarValue::from(1_i64)]).len(), MAX_WIDTH);
    }
}
