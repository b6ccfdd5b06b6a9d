//! [`StartTime`]: the time of the wall clock at which a recording starts.

use core::time::Duration;
use std::time::SystemTime;

use crate::failure::Failure;
use crate::quantities::{LONGEST_TIME, parse_time};

const EXPECTED: &str = "expected /10s for the next full 10 s of the clock, @SECONDS since 1970 (`date -d 20:45 +@%s`), or a \
                        date as in 2030-12-31T23:59:00Z";
const DAY: i64 = 86_400;

/// Start of a recording by the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartTime {
    /// The next multiple of this time since 1970, in UTC.
    Multiple(Duration),
    /// This time since 1970.
    Fixed(Duration),
}

impl StartTime {
    /// Parses `/TIME`, `@SECONDS`, or a date of RFC 3339.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Some(period) = text.strip_prefix('/') {
            return parse_time(period).map(Self::Multiple);
        }
        let fixed = text.strip_prefix('@').map_or_else(|| rfc3339(text), seconds);
        fixed.map(Self::Fixed).ok_or_else(|| EXPECTED.to_owned())
    }

    /// Returns the time of the start, as seen at `now`.
    ///
    /// # Errors
    ///
    /// It is over, or further away than the longest recording takes.
    pub(crate) fn after(self, now: SystemTime) -> Result<SystemTime, Failure> {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let start = match self {
            Self::Multiple(period) => {
                let period = period.as_nanos().max(1);
                let next = (now.as_nanos() / period + 1) * period;
                Duration::new(
                    u64::try_from(next / 1_000_000_000).unwrap_or(u64::MAX),
                    u32::try_from(next % 1_000_000_000).unwrap_or(0),
                )
            }
            Self::Fixed(start) => start,
        };
        let what = || format!("cannot start at {}", Utc(start));
        match start.checked_sub(now) {
            Some(left) if left <= LONGEST_TIME => Ok(SystemTime::UNIX_EPOCH + start),
            Some(_) => Err(Failure::new(what(), "it is more than 7 days from now")
                .hint("start `esatto record` later, for instance by a timer")),
            None => {
                let late = now.saturating_sub(start).as_secs_f64();
                Err(Failure::new(what(), format!("it was {late:.1} s ago, by the clock of this machine"))
                    .hint("choose a later time, or /10s for the next full 10 s"))
            }
        }
    }
}

/// A time since 1970, displayed as a date.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Utc(pub(crate) Duration);

impl core::fmt::Display for Utc {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let seconds = i64::try_from(self.0.as_secs()).unwrap_or(i64::MAX);
        let (days, second) = (seconds / DAY, seconds % DAY);
        // Years begin in March here, so that a leap day is the last one of its year.
        let days = days.saturating_add(719_468);
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = era * 400 + year + i64::from(month <= 2);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        match self.0.subsec_millis() {
            0 => f.write_str("Z"),
            ms => write!(f, ".{ms:03}Z"),
        }
    }
}

/// Parses a number of seconds that may have a fraction.
fn seconds(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let nanos: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    Some(Duration::new(whole.parse().ok()?, nanos.parse().ok()?))
}

/// Parses a date of RFC 3339, since 1970.
fn rfc3339(text: &str) -> Option<Duration> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let (year, month, day) = numbers(date, '-', [4, 2, 2])?;
    let zone_at = time.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = time.split_at(zone_at);
    let offset = match zone {
        "Z" | "z" => 0,
        _ => {
            let (hours, minutes, _) = numbers(&format!("{}:00", &zone[1..]), ':', [2, 2, 2])?;
            let offset = hours * 3600 + minutes * 60;
            (hours < 24 && minutes < 60).then_some(if zone.starts_with('-') { -offset } else { offset })?
        }
    };
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let (hour, minute, second) = numbers(time, ':', [2, 2, 2])?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of_month = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=days_of_month).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Years begin in March here, so that a leap day is the last one of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    let since = days * DAY + hour * 3600 + minute * 60 + second - offset;
    let fraction = seconds(&format!("0.{fraction}"))?;
    Some(Duration::from_secs(u64::try_from(since).ok()?) + fraction)
}

/// Parses three numbers of so many digits.
fn numbers(text: &str, separator: char, digits: [usize; 3]) -> Option<(i64, i64, i64)> {
    let mut parts = text.split(separator);
    let mut number = |digits: usize| -> Option<i64> {
        let part = parts.next()?;
        let is_number = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse().ok())?
    };
    let found = (number(digits[0])?, number(digits[1])?, number(digits[2])?);
    parts.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_times_since_1970() {
        let fixed = |text: &str| match StartTime::parse(text) {
            Ok(StartTime::Fixed(time)) => time,
            other => panic!("{text}: {other:?}"),
        };
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T00:00:00Z", 951_782_400),
            ("2026-11-23T09:26:32Z", 1_795_425_992),
            ("2026-11-23T10:26:32+01:00", 1_795_425_992),
            ("2026-11-23 03:56:32-05:30", 1_795_425_992),
            ("@1795425992", 1_795_425_992),
        ] {
            assert_eq!(fixed(text), Duration::from_secs(seconds), "{text}");
        }
        assert_eq!(fixed("@1.25"), Duration::from_millis(1250));
        assert_eq!(fixed("1970-01-01T00:00:01.5Z"), Duration::from_millis(1500));
        assert_eq!(Utc(Duration::from_millis(1_795_425_992_250)).to_string(), "2026-11-23T09:26:32.250Z");
        for bad in [
            "",
            "@",
            "@x",
            "@1.",
            "@-1",
            "/",
            "/10",
            "10s",
            "20:45",
            "2026-11-23T09:26:32",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-23T24:00:00Z",
            "2026-11-23T09:26:32+1",
            "1969-12-31T23:59:59Z",
            "2026-11-23T09:26:32\u{e9}",
            "/0s",
        ] {
            assert!(StartTime::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn multiples_are_those_of_the_clock() {
        let at = |ms: u64| SystemTime::UNIX_EPOCH + Duration::from_millis(ms);
        let every = StartTime::parse("/10s").unwrap();
        assert_eq!(every.after(at(12_345)).unwrap(), at(20_000));
        // A full period is left, so that a machine that is a little late begins with the others.
        assert_eq!(every.after(at(20_000)).unwrap(), at(30_000));
        assert_eq!(StartTime::parse("/500ms").unwrap().after(at(1_250)).unwrap(), at(1_500));
    }

    #[test]
    fn a_time_that_is_over_or_far_away_is_refused() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        let refused = |text: &str| StartTime::parse(text).unwrap().after(now).unwrap_err().to_string();
        assert!(refused("@99.5").contains("it was 0.5 s ago"));
        assert!(refused("@1000000").contains("more than 7 days from now"));
        assert!(refused("@18446744073709551615").contains("more than 7 days"));
    }
}
