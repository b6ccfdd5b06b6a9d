//! Names in commands that a person copies.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;

use esatto_trace::escape::is_unsafe;

/// Shows a name as one word of a shell command, on one line: quoted where the shell would read it
/// otherwise. Bytes that cannot be shown are escaped as bash, zsh and ksh read them (`$'\n'`).
pub(crate) struct ShellWord<'w>(&'w OsStr);

impl<'w> ShellWord<'w> {
    pub(crate) fn new(name: &'w (impl AsRef<OsStr> + ?Sized)) -> Self {
        Self(name.as_ref())
    }
}

impl fmt::Display for ShellWord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.as_bytes();
        if bytes.starts_with(b"-") && bytes != b"-" {
            // A program would read an option.
            f.write_str("./")?;
        }
        match self.0.to_str().filter(|text| !text.contains(is_unsafe)) {
            Some(text) if !text.is_empty() && text.chars().all(is_plain) => f.write_str(text),
            Some(text) => write!(f, "'{}'", text.replace('\'', r"'\''")),
            None => {
                f.write_str("$'")?;
                for chunk in bytes.utf8_chunks() {
                    for c in chunk.valid().chars() {
                        match c {
                            '\'' | '\\' => write!(f, "\\{c}")?,
                            c if is_unsafe(c) => {
                                c.encode_utf8(&mut [0; 4]).bytes().try_for_each(|byte| write!(f, "\\{byte:03o}"))?;
                            }
                            c => write!(f, "{c}")?,
                        }
                    }
                    chunk.invalid().iter().try_for_each(|byte| write!(f, "\\{byte:03o}"))?;
                }
                f.write_str("'")
            }
        }
    }
}

/// Returns whether a character has no meaning for a shell, wherever it stands in a word.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "-_./:@%+=,".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn plain_names_stay() {
        for name in ["a.pftrace", "/tmp/größe_1-2.pftrace", "x:y@z%+=,"] {
            assert_eq!(ShellWord::new(name).to_string(), name);
        }
        assert_eq!(ShellWord::new("my trace").to_string(), "'my trace'");
        assert_eq!(ShellWord::new("-o").to_string(), "./-o");
    }

    #[test]
    fn a_shell_reads_the_name() {
        let names: [&[u8]; 10] = [
            b"my new.cfg",
            b"it's",
            b"we ird \"na\\me$x.pftrace",
            b"$(touch x)`id`",
            b"new\nline\ttab",
            b"~/x *?[a]{b,c};&|<>#!",
            b"",
            b"\xff\xfe'\\raw",
            "\u{202e}txt.\u{9b}2J8".as_bytes(),
            b"a\\b\\'c\x07",
        ];
        for name in names {
            let word = ShellWord::new(OsStr::from_bytes(name)).to_string();
            assert!(!word.contains(is_unsafe), "{word}");
            let output = Command::new("bash").args(["-c", &format!("printf %s {word}")]).output().expect("bash runs");
            assert_eq!(output.stdout, name, "{word}");
        }
    }
}
