//! Comments of a schema as doc comments.

/// Returns a comment as Markdown. rustdoc must not run it, and must not find links, tags or
/// headings in it.
#[must_use]
pub fn markdown(comment: &str) -> String {
    comment.trim_end().lines().map(line).collect::<Vec<_>>().join("\n").trim_matches('\n').to_owned()
}

fn line(line: &str) -> String {
    let line: String = line.trim_end().chars().filter(|c| !is_control(*c)).collect();
    let mut line = line.strip_prefix(' ').unwrap_or(&line);
    if line.starts_with("    ") || line.starts_with('\t') {
        // This would be a block of code.
        line = line.trim_start();
    }
    let mut out = String::new();
    let start = line.trim_start();
    if ["#", "~~~", "---", "===", "***"].iter().any(|mark| start.starts_with(mark)) {
        // This would be a heading, code or a rule.
        out.push('\\');
    }
    // With an odd number of marks it is not clear which part is code.
    let has_code = line.matches('`').count() % 2 == 0 && !line.contains("```");
    for (index, part) in line.replace("```", "``").split('`').enumerate() {
        if index > 0 {
            out.push('`');
        }
        if has_code && index % 2 == 1 { out.push_str(part) } else { text(part, &mut out) }
    }
    out
}

/// Appends text that is not code. Addresses become links, and nothing else does.
fn text(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(start) = ["http://", "https://"].iter().filter_map(|scheme| rest.find(scheme)).min() {
        let (before, address) = rest.split_at(start);
        let end = address.find(|c: char| c.is_whitespace() || "<>[](){}\"'`|\\".contains(c)).unwrap_or(address.len());
        let end = address[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', '*']).len();
        escape(before, out);
        out.push('<');
        out.push_str(&address[..end]);
        out.push('>');
        rest = &address[end..];
    }
    escape(rest, out);
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        if matches!(c, '[' | '<') {
            out.push('\\');
        }
        out.push(c);
    }
}

/// Returns true for characters that the Rust compiler does not allow in comments: a bare carriage
/// return, and those that change the direction of text.
fn is_control(c: char) -> bool {
    matches!(c, '\r' | '\0' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::markdown;

    #[test]
    fn nothing_in_a_comment_becomes_a_doctest_or_a_link() {
        for (comment, doc) in [
            (" See [x].\n\n     let y = 1;\n", "See \\[x].\n\nlet y = 1;"),
            (" ```\n code[0]\n ```", "``\ncode\\[0]\n``"),
            (" ~~~rust\n", "\\~~~rust"),
            ("# Heading\n ====", "\\# Heading\n\\===="),
            (" Vec<u8> and `Vec<u8>[0]`, an odd ` [", "Vec\\<u8> and `Vec\\<u8>\\[0]`, an odd ` \\["),
            (" Vec<u8> and `Vec<u8>[0]`", "Vec\\<u8> and `Vec<u8>[0]`"),
            (" (see https://example.com/a?b=[1].)", "(see <https://example.com/a?b=>\\[1].)"),
            (" at http://x.org.", "at <http://x.org>."),
            (" one\r two\u{202e}", "one two"),
        ] {
            assert_eq!(markdown(comment), doc);
        }
    }
}
