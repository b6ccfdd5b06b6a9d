//! Parser for command lines in the style of GNU `getopt_long` (`docs/spec/cli.md` §1), which
//! scripts for Perfetto's daemons use.
//!
//! A long option is `--opt VALUE` or `--opt=VALUE`, and may be shortened while it stays
//! unambiguous. `--` ends the options.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// An option of a program.
#[derive(Clone, Copy, Debug)]
pub struct Known<T> {
    /// Name after the two dashes.
    pub long: &'static str,
    /// Letter after one dash.
    pub short: Option<char>,
    /// True if a value belongs to it.
    pub takes_value: bool,
    /// Stands for the option in the result.
    pub meaning: T,
}

/// Splits a command line into options, each with its value if it takes one.
///
/// # Errors
///
/// A line that names the mistake. Arguments that are no options are mistakes: the daemons take
/// none.
pub fn parse<T: Copy>(
    args: impl IntoIterator<Item = OsString>,
    known: &[Known<T>],
) -> Result<Vec<(T, Option<String>)>, String> {
    let mut args = args.into_iter();
    let mut found = Vec::new();
    while let Some(arg) = args.next() {
        let text = String::from_utf8_lossy(arg.as_bytes());
        if text == "--" {
            return match args.next() {
                Some(rest) => Err(format!("unexpected argument {}", rest.to_string_lossy())),
                None => Ok(found),
            };
        }
        if let Some(long) = text.strip_prefix("--") {
            let (name, attached) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let option = find_long(name, known)?;
            let value = match (option.takes_value, attached) {
                (false, Some(_)) => return Err(format!("--{} takes no value", option.long)),
                (false, None) => None,
                (true, Some(value)) => Some(value),
                (true, None) => Some(value_of(option.long, args.next())?),
            };
            found.push((option.meaning, value));
        } else if let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            for letter in letters.chars() {
                let option = known.iter().find(|option| option.short == Some(letter));
                let option = option.ok_or_else(|| format!("unknown option -{letter}"))?;
                found.push((option.meaning, None));
            }
        } else {
            return Err(format!("unexpected argument {text}"));
        }
    }
    Ok(found)
}

/// Returns the option with this name, or the only one whose name begins with it.
fn find_long<'k, T>(name: &str, known: &'k [Known<T>]) -> Result<&'k Known<T>, String> {
    if let Some(exact) = known.iter().find(|option| option.long == name) {
        return Ok(exact);
    }
    let mut alike = known.iter().filter(|option| !name.is_empty() && option.long.starts_with(name));
    match (alike.next(), alike.next()) {
        (Some(option), None) => Ok(option),
        (Some(one), Some(other)) => Err(format!("--{name} could be --{} or --{}", one.long, other.long)),
        (None, _) => Err(format!("unknown option --{name}")),
    }
}

fn value_of(option: &str, next: Option<OsString>) -> Result<String, String> {
    let value = next.ok_or_else(|| format!("--{option} needs a value"))?;
    String::from_utf8(value.into_vec()).map_err(|_| format!("the value of --{option} is not text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Known<char>] = &[
        Known { long: "verbose", short: Some('v'), takes_value: false, meaning: 'v' },
        Known { long: "version", short: None, takes_value: false, meaning: 'V' },
        Known { long: "endpoint", short: None, takes_value: false, meaning: 'e' },
        Known { long: "endpoint-on", short: None, takes_value: true, meaning: 'o' },
    ];

    fn run(args: &[&str]) -> Result<String, String> {
        let found = parse(args.iter().map(OsString::from), KNOWN)?;
        let text = |(c, value): (char, Option<String>)| match value {
            Some(value) => format!("{c}={value} "),
            None => c.to_string(),
        };
        Ok(found.into_iter().map(text).collect())
    }

    #[test]
    fn options_are_those_of_getopt_long() {
        for (args, want) in [
            (&[][..], ""),
            (&["-vv", "--verbose", "--version"], "vvvV"),
            (&["--verb", "--vers"], "vV"),
            // Exactly this option is meant, although another begins with the same letters.
            (&["--endpoint"], "e"),
            (&["--endpoint-on", "a", "--endpoint-on=b=c", "--endpoint-=d"], "o=a o=b=c o=d "),
            (&["-v", "--"], "v"),
        ] {
            assert_eq!(run(args).as_deref(), Ok(want), "{args:?}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (args, want) in [
            (&["--ver"][..], "--ver could be --verbose or --version"),
            (&["--nothing"], "unknown option --nothing"),
            (&["--=x"], "unknown option --"),
            (&["-vx"], "unknown option -x"),
            (&["--verbose=3"], "--verbose takes no value"),
            (&["--endpoint-on"], "--endpoint-on needs a value"),
            (&["file"], "unexpected argument file"),
            (&["-"], "unexpected argument -"),
            (&["--", "-v"], "unexpected argument -v"),
        ] {
            assert_eq!(run(args).unwrap_err(), want, "{args:?}");
        }
    }
}
