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

/// A command line, taken apart.
#[derive(Debug)]
pub struct CommandLine<T> {
    /// Options in their order, each with its value if it takes one.
    pub options: Vec<(T, Option<OsString>)>,
    /// Arguments that are no options.
    pub arguments: Vec<OsString>,
}

/// Splits the command line of a daemon into options, each with its value if it takes one.
///
/// # Errors
///
/// A line that names the mistake. Arguments that are no options are mistakes: the daemons take
/// none.
pub(crate) fn parse<T: Copy>(
    args: impl IntoIterator<Item = OsString>,
    known: &[Known<T>],
) -> Result<Vec<(T, Option<String>)>, String> {
    let line = split(args, known)?;
    if let Some(argument) = line.arguments.first() {
        return Err(format!("unexpected argument {}", argument.to_string_lossy()));
    }
    line.options.into_iter().map(|(meaning, value)| Ok((meaning, value.map(text).transpose()?))).collect()
}

/// Splits a command line in which options and other arguments may be mixed.
///
/// # Errors
///
/// A line that names the mistake.
pub fn split<T: Copy>(args: impl IntoIterator<Item = OsString>, known: &[Known<T>]) -> Result<CommandLine<T>, String> {
    let mut args = args.into_iter();
    let mut line = CommandLine { options: Vec::new(), arguments: Vec::new() };
    while let Some(arg) = args.next() {
        let bytes = arg.as_bytes();
        if bytes == b"--" {
            line.arguments.extend(args);
            break;
        }
        if let Some(long) = bytes.strip_prefix(b"--") {
            let (name, attached) = match long.iter().position(|&byte| byte == b'=') {
                Some(at) => (&long[..at], Some(OsString::from_vec(long[at + 1..].to_vec()))),
                None => (long, None),
            };
            let option = find_long(&String::from_utf8_lossy(name), known)?;
            let value = match (option.takes_value, attached) {
                (false, Some(_)) => return Err(format!("--{} takes no value", option.long)),
                (false, None) => None,
                (true, Some(value)) => Some(value),
                (true, None) => Some(args.next().ok_or_else(|| format!("--{} needs a value", option.long))?),
            };
            line.options.push((option.meaning, value));
        } else if let Some(letters) = bytes.strip_prefix(b"-").filter(|letters| !letters.is_empty()) {
            for (at, &letter) in letters.iter().enumerate() {
                let letter = char::from(letter);
                let option = known.iter().find(|option| option.short == Some(letter));
                let option = option.ok_or_else(|| format!("unknown option -{}", letter.escape_default()))?;
                if option.takes_value {
                    // The rest of the argument, or the next argument.
                    let rest = &letters[at + 1..];
                    let value = if rest.is_empty() { args.next() } else { Some(OsString::from_vec(rest.to_vec())) };
                    let value = value.ok_or_else(|| format!("-{letter} needs a value"))?;
                    line.options.push((option.meaning, Some(value)));
                    break;
                }
                line.options.push((option.meaning, None));
            }
        } else {
            line.arguments.push(arg);
        }
    }
    Ok(line)
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

fn text(value: OsString) -> Result<String, String> {
    value.into_string().map_err(|value| format!("{value:?} is not text"))
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
    fn arguments_and_values_of_letters_may_be_mixed() {
        let known = [
            Known { long: "out", short: Some('o'), takes_value: true, meaning: 'o' },
            Known { long: "txt", short: Some('x'), takes_value: false, meaning: 'x' },
        ];
        let run = |args: &[&str]| {
            let line = split(args.iter().map(OsString::from), &known)?;
            let options = line.options.into_iter().map(|(c, value)| match value {
                Some(value) => format!("{c}={} ", value.to_string_lossy()),
                None => format!("{c} "),
            });
            let arguments = line.arguments.iter().map(|argument| format!("[{}]", argument.to_string_lossy()));
            Ok::<_, String>(options.chain(arguments).collect::<String>())
        };
        for (args, want) in [
            (&["a", "-o", "f", "b", "--txt"][..], "o=f x [a][b]"),
            (&["-xof", "-o-", "-"], "x o=f o=- [-]"),
            (&["-o", "-x", "--", "-x", "--", "c"], "o=-x [-x][--][c]"),
            (&["--out=", "-o", ""], "o= o= "),
        ] {
            assert_eq!(run(args).as_deref(), Ok(want), "{args:?}");
        }
        assert_eq!(run(&["-xo"]).unwrap_err(), "-o needs a value");
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
