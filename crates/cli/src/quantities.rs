//! Times and sizes on the command line.

use core::time::Duration;

/// Longest time of a recording in milliseconds. Services refuse a longer one
/// (`docs/spec/service.md` §5).
const LONGEST_TIME_MS: u64 = 7 * 24 * 3600 * 1000;
/// The same as a duration.
pub(crate) const LONGEST_TIME: Duration = Duration::from_millis(LONGEST_TIME_MS);

/// Parses `N` followed by `ms`, `s`, `m` or `h` (`docs/spec/cli.md` §6).
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err("expected a whole number and a unit: 500ms, 10s, 1m or 2h".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "expected a whole number before the unit, as in 10s".to_owned())?;
    match number.checked_mul(factor_ms) {
        Some(0) => Err("the time must be more than 0, as in 500ms, 10s or 1m".to_owned()),
        Some(ms) if ms <= LONGEST_TIME_MS => Ok(Duration::from_millis(ms)),
        _ => Err("the time is more than 7 days, the longest recording".to_owned()),
    }
}

/// Largest size in KiB: that of a buffer (`docs/spec/service.md` §5, 30).
const LARGEST_SIZE_KB: u64 = 4_194_300;

/// Parses `N` followed by `K`, `M` or `G`. Returns KiB.
pub(crate) fn parse_size_kb(text: &str) -> Result<u32, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = unit.to_ascii_lowercase();
    let factor_kb: u64 = match unit.strip_suffix("ib").or_else(|| unit.strip_suffix('b')).unwrap_or(&unit) {
        "k" => 1,
        "m" => 1 << 10,
        "g" => 1 << 20,
        _ => return Err("expected a whole number and a unit: 512K, 64M or 2G".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "expected a whole number before the unit, as in 64M".to_owned())?;
    match number.checked_mul(factor_kb) {
        Some(0) => Err("the size must be more than 0, as in 64M".to_owned()),
        Some(kb) if kb <= LARGEST_SIZE_KB => u32::try_from(kb).map_err(|error| error.to_string()),
        _ => Err("the size is not less than 4 GiB, the largest one".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_number_and_a_unit() {
        assert_eq!(parse_time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_time("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_time("2h"), Ok(Duration::from_secs(7200)));
        assert_eq!(parse_time("168h"), Ok(Duration::from_secs(7 * 24 * 3600)));
        assert_eq!(parse_time("169h"), Err("the time is more than 7 days, the longest recording".to_owned()));
        for bad in ["", "10", "s", "-1s", "1 s", "1d", "0s", "99999999999s", "18446744073709551615h"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_have_a_number_and_a_unit() {
        assert_eq!(parse_size_kb("512K"), Ok(512));
        assert_eq!(parse_size_kb("64M"), Ok(65536));
        assert_eq!((parse_size_kb("64mb"), parse_size_kb("1GiB")), (Ok(65536), Ok(1 << 20)));
        for bad in ["", "64", "M", "-1M", "1 M", "1T", "0K", "4G", "99999999999999999999M"] {
            assert!(parse_size_kb(bad).is_err(), "{bad}");
        }
    }
}
