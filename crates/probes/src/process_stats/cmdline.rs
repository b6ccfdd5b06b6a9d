//! Arguments in `/proc/PID/cmdline`.

/// Returns the arguments that are not empty.
///
/// A NUL follows each argument. Programs that put a title of their own there leave NULs at its end.
/// The end of the file can be missing, because of the bound of its size.
pub(crate) fn arguments(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == 0).filter(|argument| !argument.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_and_cut_lines_have_no_empty_arguments() {
        let all = |text: &'static [u8]| arguments(text).collect::<Vec<_>>();
        assert_eq!(all(b"/bin/echo\0a b\0\xff\0"), [&b"/bin/echo"[..], b"a b", b"\xff"]);
        assert_eq!(all(b"sshd: user\0\0\0\0\0"), [b"sshd: user"]);
        assert_eq!(all(b"/bin/ec"), [b"/bin/ec"]);
        assert_eq!(all(b"\0\0\0").len(), 0);
    }
}
