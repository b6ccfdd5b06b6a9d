//! Folded stacks: one line per stack, as tools for flame graphs read them.

use std::io::{self, Write};

use crate::stacks::Stacks;

/// Writes a line for each stack that has a value: its frames from the root, separated by
/// semicolons, a space, and the first value.
///
/// # Errors
///
/// Those of the output.
pub fn write_folded(stacks: &Stacks, out: &mut impl Write) -> io::Result<()> {
    for (origin, node, values) in stacks.samples() {
        if values[0] <= 0 {
            continue;
        }
        let origin = &stacks.origins[origin];
        let frames = stacks.path(node).into_iter().map(|frame| stacks.frames[frame].name.as_str());
        let mut separator = "";
        for frame in origin.frames().iter().map(String::as_str).chain(frames) {
            out.write_all(separator.as_bytes())?;
            out.write_all(one_frame(frame).as_bytes())?;
            separator = ";";
        }
        writeln!(out, " {}", values[0])?;
    }
    Ok(())
}

/// Returns the name of a frame without characters that end a frame or a line.
fn one_frame(name: &str) -> String {
    let replace = |c: char| match c {
        ';' => ':',
        c if c.is_control() => ' ',
        c => c,
    };
    if name.is_empty() { "(no name)".to_owned() } else { name.chars().map(replace).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_add_a_frame_or_a_line() {
        assert_eq!(one_frame("a;b\nc 5"), "a:b c 5");
        assert_eq!(one_frame(""), "(no name)");
    }
}
