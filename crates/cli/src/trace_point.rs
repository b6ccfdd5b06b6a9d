//! A moment of a trace, as users name it.

/// A moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TracePoint {
    /// Nanoseconds of the trace clock.
    Absolute(i64),
    /// Nanoseconds after the first event.
    AfterStart(i64),
    /// Nanoseconds since 1970, in UTC.
    Wall(i64),
}

impl TracePoint {
    /// Reads a moment from the command line.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let found = match text.strip_prefix('+') {
            Some(rest) => duration(rest).map(Self::AfterStart),
            None if text.contains('T') => wall(text).map(Self::Wall),
            None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok().map(Self::Absolute),
            None => duration(text).map(Self::AfterStart),
        };
        found.ok_or_else(|| "expected +1.5s, 10ms, nanoseconds, or 2026-11-27T14:03:20Z".to_owned())
    }

    /// Returns the moment on the trace clock. `start` is the time of the first event, and `ahead`
    /// how far the time of day is ahead of the trace clock.
    pub(crate) fn on_trace_clock(self, start: i64, ahead: Option<i64>) -> Option<i64> {
        match self {
            Self::Absolute(time) => Some(time),
            Self::AfterStart(time) => Some(start.saturating_add(time)),
            Self::Wall(time) => Some(time.saturating_sub(ahead?)),
        }
    }
}

/// Reads a number with a unit as nanoseconds.
fn duration(text: &str) -> Option<i64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let unit: i64 = match unit {
        "ns" => 1,
        "us" | "µs" => 1000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    decimal(number, unit)
}

/// Returns a decimal number times a factor, without rounding errors of binary numbers.
fn decimal(number: &str, factor: i64) -> Option<i64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut value = whole.parse::<i64>().ok()?.checked_mul(factor)?;
    let mut place = factor;
    for digit in fraction.chars() {
        place /= 10;
        value = value.checked_add(place.checked_mul(i64::from(digit.to_digit(10)?))?)?;
    }
    Some(value)
}

/// Reads a time of day in UTC as nanoseconds since 1970.
fn wall(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = numbers(date, '-')?;
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(clock, ':')?;
    let is_valid = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 61;
    if !is_valid || !(1970..2262).contains(&year) || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Years begin in March here, so that a leap day is the last one of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    seconds.checked_mul(1_000_000_000)?.checked_add(decimal(&format!("0.{fraction}"), 1_000_000_000)?)
}

fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let numbers: Option<Vec<i64>> = text.split(separator).map(|part| part.parse().ok()).collect();
    numbers?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_three_forms() {
        let parse = |text| TracePoint::parse(text).ok();
        assert_eq!(parse("1234"), Some(TracePoint::Absolute(1234)));
        assert_eq!(parse("+1.5s"), Some(TracePoint::AfterStart(1_500_000_000)));
        assert_eq!(parse("10ms"), Some(TracePoint::AfterStart(10_000_000)));
        assert_eq!(parse("0.1us"), Some(TracePoint::AfterStart(100)));
        assert_eq!(parse("2000-02-29T00:00:00Z"), Some(TracePoint::Wall(951_782_400_000_000_000)));
        assert_eq!(parse("2026-11-23T09:26:32.25Z"), Some(TracePoint::Wall(1_795_425_992_250_000_000)));
        for wrong in ["", "+", "s", "-5s", "5", "1.2.3s", "5x", "2026-11-23T09:26:32", "2026-13-01T00:00:00Z", "T"] {
            assert_eq!(parse(wrong).is_some(), wrong == "5", "{wrong}");
        }
        assert_eq!(parse("99999999999999999999"), None);
        assert_eq!(parse("99999999999h"), None);
    }
}
