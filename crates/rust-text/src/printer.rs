//! Text in the format of rustfmt.

/// Longest line, as in the repository's `rustfmt.toml`.
const WIDTH: usize = 120;

/// Longest line of a comment.
const COMMENT_WIDTH: usize = 100;

/// Lines of Rust with the indentation of the place they are written at.
#[derive(Debug, Default)]
pub struct Printer {
    text: String,
    depth: usize,
    /// A blank line is due before the next item.
    gap: bool,
}

impl Printer {
    /// Appends one line.
    pub fn line(&mut self, line: impl AsRef<str>) {
        if core::mem::take(&mut self.gap) {
            self.text.push('\n');
        }
        self.text.push_str(&"    ".repeat(self.depth));
        self.text.push_str(line.as_ref());
        self.text.push('\n');
    }

    /// Appends one line of a text that has its own indentation.
    pub fn indented(&mut self, line: &str) {
        if line.is_empty() { self.text.push('\n') } else { self.line(line) }
    }

    /// Asks for a blank line before the next line of this block, unless that is the first.
    pub fn gap(&mut self) {
        self.gap = !self.text.ends_with("{\n");
    }

    /// Appends `head {`, then calls `body` one level deeper, then appends `}`.
    pub fn block(&mut self, head: impl AsRef<str>, body: impl FnOnce(&mut Self)) {
        self.block_with_end(head, body, "}");
    }

    /// As [`block`](Self::block), with `end` instead of `}`.
    pub fn block_with_end(&mut self, head: impl AsRef<str>, body: impl FnOnce(&mut Self), end: &str) {
        self.line(format!("{} {{", head.as_ref()));
        self.nested(body);
        self.line(end);
    }

    /// As [`block`](Self::block), but `head {}` if it is empty.
    pub fn block_or_empty(&mut self, head: &str, is_empty: bool, body: impl FnOnce(&mut Self)) {
        if is_empty { self.line(format!("{head} {{}}")) } else { self.block(head, body) }
    }

    /// Appends `{left} {head} { body };`, on two lines if it is too long, or on three.
    pub fn assign_block(&mut self, left: &str, head: &str, body: &str) {
        let right = format!("{head} {{ {body} }};");
        if self.fits(&format!("{left} {right}")) || self.fits(&format!("    {right}")) {
            return self.value(left, &right);
        }
        self.block_with_end(format!("{left} {head}"), |p| p.line(body), "};");
    }

    /// Calls `body` one level deeper.
    fn nested(&mut self, body: impl FnOnce(&mut Self)) {
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.gap = false;
    }

    /// Appends lines of a doc comment; none for an empty text.
    pub fn doc(&mut self, text: &str) {
        self.comment("///", text);
    }

    /// Appends lines of a comment that begin with `marker`. Longer lines are wrapped.
    pub fn comment(&mut self, marker: &str, text: &str) {
        let width = COMMENT_WIDTH.saturating_sub(self.depth * 4 + marker.len() + 1);
        for line in text.lines().flat_map(|line| wrap(line, width)) {
            self.line(if line.is_empty() { marker.to_owned() } else { format!("{marker} {line}") });
        }
    }

    /// Appends the `cfg` of a cargo feature, if there is one.
    pub fn cfg(&mut self, feature: Option<&str>) {
        if let Some(feature) = feature {
            self.line(format!("#[cfg(feature = {feature:?})]"));
        }
    }

    /// Appends a further paragraph of a doc comment; none for an empty text.
    pub fn remark(&mut self, text: &str) {
        if !text.is_empty() {
            self.doc(&format!("\n{text}"));
        }
    }

    /// Appends the head of a function, or its declaration if `end` is `;`. If it is too long, each
    /// argument gets a line.
    pub fn signature(&mut self, name: &str, args: &[String], returns: &str, end: &str) {
        let one_line = format!("{name}({}){returns}{end}", args.join(", "));
        if self.fits(&one_line) {
            return self.line(one_line);
        }
        self.line(format!("{name}("));
        self.nested(|p| args.iter().for_each(|arg| p.line(format!("{arg},"))));
        let close = format!("){returns}{end}");
        match close.strip_suffix(" {") {
            Some(close) if !self.fits(&format!("{close} {{")) => {
                self.line(close);
                self.line("{");
            }
            _ => self.line(close),
        }
    }

    /// Appends a function with its body.
    pub fn function(&mut self, name: &str, args: &[String], returns: &str, body: &[String]) {
        self.function_with(name, args, returns, |p| body.iter().for_each(|line| p.line(line)));
    }

    /// Appends a function whose body `body` writes.
    pub fn function_with(&mut self, name: &str, args: &[String], returns: &str, body: impl FnOnce(&mut Self)) {
        self.signature(name, args, returns, " {");
        self.nested(body);
        self.line("}");
    }

    /// Appends `{before}{function}(args){after}`. If it is too long, each argument gets a line.
    pub fn call(&mut self, before: &str, function: &str, args: &[String], after: &str) {
        let one_line = format!("{before}{function}({}){after}", args.join(", "));
        if self.fits(&one_line) {
            return self.line(one_line);
        }
        let head = format!("{before}{function}(");
        if let Some((name, generics)) = function.split_once("::<").filter(|_| !self.fits(&head)) {
            self.line(format!("{before}{name}::<"));
            self.nested(|p| split(generics.strip_suffix('>').unwrap_or(generics)).iter().for_each(|one| p.line(one)));
            return self.line(format!(">({}){after}", args.join(", ")));
        }
        self.line(head);
        self.nested(|p| args.iter().for_each(|arg| p.line(format!("{arg},"))));
        self.line(format!("){after}"));
    }

    /// Appends an arm of a `match` whose value is a call. If the line is too long, the call gets
    /// its own line or is broken.
    pub fn arm_call(&mut self, pattern: &str, function: &str, args: &[String]) {
        let call = format!("{function}({})", args.join(", "));
        if self.fits(&format!("{pattern} => {call},")) {
            return self.line(format!("{pattern} => {call},"));
        }
        let pattern = &self.alternatives(pattern);
        if self.fits(&format!("{pattern} => {call},")) {
            return self.line(format!("{pattern} => {call},"));
        }
        if self.depth * 4 + 4 + call.len() <= WIDTH {
            return self.block(format!("{pattern} =>"), |p| p.line(call));
        }
        self.call(&format!("{pattern} => "), function, args, ",");
    }

    /// Appends all lines of a pattern of many alternatives except the last one, which it returns.
    fn alternatives(&mut self, pattern: &str) -> String {
        let mut line = String::new();
        for alternative in pattern.split(" | ") {
            let bar = if line.is_empty() { "" } else { " | " };
            // rustfmt keeps room for the end of the pattern.
            if self.fits(&format!("{line}{bar}{alternative} => {{")) {
                line += &format!("{bar}{alternative}");
            } else {
                self.line(core::mem::replace(&mut line, format!("| {alternative}")));
            }
        }
        line
    }

    /// Appends an arm of a `match`. If the line is too long, its value is in braces.
    pub fn arm(&mut self, pattern: &str, value: &str) {
        let one_line = format!("{pattern} => {value},");
        if self.fits(&one_line) {
            return self.line(one_line);
        }
        self.block(format!("{pattern} =>"), |p| p.line(value));
    }

    /// Appends `name: type`. If the line is too long, the type gets its own line.
    pub fn field(&mut self, name: &str, type_name: &str) {
        let one_line = format!("{name}: {type_name},");
        if self.fits(&one_line) {
            return self.line(one_line);
        }
        self.line(format!("{name}:"));
        self.nested(|p| p.line(format!("{type_name},")));
    }

    /// Appends `head[a, b, c]tail`. If it is too long, each element gets a line.
    pub fn list(&mut self, head: &str, elements: &[String], tail: &str) {
        let one_line = format!("{head}[{}]{tail}", elements.join(", "));
        if self.fits(&one_line) {
            return self.line(one_line);
        }
        self.line(format!("{head}["));
        self.nested(|p| elements.iter().for_each(|element| p.line(format!("{element},"))));
        self.line(format!("]{tail}"));
    }

    /// Appends `head[name { a: 1, b: 2 }, …]tail`, where each element is `a: 1, b: 2`. If an
    /// element is too long, each of its fields gets a line.
    pub fn structs(&mut self, head: &str, name: &str, elements: &[String], tail: &str) {
        let fields = |p: &mut Self, fields: &str| fields.split(", ").for_each(|field| p.line(format!("{field},")));
        if let [element] = elements {
            let one_line = format!("{head}[{name} {{ {element} }}]{tail}");
            if self.fits(&one_line) {
                return self.line(one_line);
            }
            return self.block_with_end(format!("{head}[{name}"), |p| fields(p, element), &format!("}}]{tail}"));
        }
        self.line(format!("{head}["));
        self.nested(|p| {
            for element in elements {
                let one_line = format!("{name} {{ {element} }},");
                if p.fits(&one_line) {
                    p.line(one_line);
                } else {
                    p.block_with_end(name, |p| fields(p, element), "},");
                }
            }
        });
        self.line(format!("]{tail}"));
    }

    /// Appends `{head} {function}(first, &[a], &[b]);`. If it is too long, each argument gets a
    /// line.
    pub fn call_with_lists(&mut self, head: &str, function: &str, first: &str, lists: &[Vec<String>]) {
        let joined: Vec<_> = lists.iter().map(|list| format!(", &[{}]", list.join(", "))).collect();
        let one_line = format!("{head} {function}({first}{});", joined.concat());
        if self.fits(&one_line) {
            return self.line(one_line);
        }
        let broken = |p: &mut Self, start: String| {
            p.line(format!("{start}("));
            p.nested(|p| {
                p.line(format!("{first},"));
                lists.iter().for_each(|list| p.list("&", list, ","));
            });
            p.line(");");
        };
        if self.fits(&format!("{head} {function}(")) {
            return broken(self, format!("{head} {function}"));
        }
        self.line(head);
        self.nested(|p| broken(p, function.to_owned()));
    }

    /// Appends `{head} {value}`. If it is too long, the value gets a line.
    pub fn value(&mut self, head: &str, value: &str) {
        let one_line = format!("{head} {value}");
        if self.fits(&one_line) {
            return self.line(one_line);
        }
        self.line(head);
        self.nested(|p| p.line(value));
    }

    /// Appends `head[1, 2, 3]tail` with short elements, which fill several lines if needed, as
    /// rustfmt does it.
    pub fn short_list(&mut self, head: &str, words: &[String], tail: &str) {
        let one_line = format!("{head}[{}]{tail}", words.join(", "));
        if self.fits(&one_line) {
            return self.line(one_line);
        }
        self.line(format!("{head}["));
        self.nested(|p| {
            let mut line = String::new();
            for word in words {
                // rustfmt leaves the last column free.
                if !line.is_empty() && !p.fits(&format!("{line} {word}, ")) {
                    p.line(core::mem::take(&mut line));
                }
                let space = if line.is_empty() { "" } else { " " };
                line += &format!("{space}{word},");
            }
            p.line(line);
        });
        self.line(format!("]{tail}"));
    }

    /// Appends `head a, b, c tail`, on several lines if needed. For macros, which rustfmt does not
    /// format.
    pub fn fill(&mut self, head: &str, words: &[String], tail: &str) {
        let mut line = head.to_owned();
        for (index, word) in words.iter().enumerate() {
            let end = if index + 1 == words.len() { tail } else { "," };
            if !self.fits(&format!("{line}{word}{end}")) {
                self.line(line.trim_end());
                line = "    ".to_owned();
            }
            line += &format!("{word}{end} ");
        }
        if words.is_empty() {
            line = line.trim_end().to_owned() + tail;
        }
        self.line(line.trim_end());
    }

    fn fits(&self, line: &str) -> bool {
        self.depth * 4 + line.len() <= WIDTH
    }

    /// Returns the text.
    pub fn finish(self) -> String {
        self.text
    }
}

/// Splits a line of Markdown at spaces so that each part fits into `width` if possible. Rows of
/// tables stay whole.
fn wrap(line: &str, width: usize) -> Vec<String> {
    if line.chars().count() <= width || line.starts_with('|') {
        return vec![line.to_owned()];
    }
    // At the start of a line these would begin a list, a heading, a quotation or a table.
    let begins_block = |word: &str| {
        word.starts_with(['-', '*', '+', '#', '>', '|', '=', '~']) || word.starts_with(|c: char| c.is_ascii_digit())
    };
    let mut parts: Vec<String> = Vec::new();
    for word in line.split(' ') {
        match parts.last_mut() {
            Some(last) if begins_block(word) => *last += &format!(" {word}"),
            _ => parts.push(word.to_owned()),
        }
    }
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(last) if last.chars().count() + 1 + part.chars().count() <= width => *last += &format!(" {part}"),
            _ => lines.push(part),
        }
    }
    lines
}

/// Returns the elements of a list of generic arguments, each with a comma after it.
fn split(generics: &str) -> Vec<String> {
    let mut depth = 0;
    let mut elements = vec![String::new()];
    for c in generics.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        if c == ',' && depth == 0 {
            elements.push(String::new());
        } else {
            elements.iter_mut().next_back().into_iter().for_each(|element| element.push(c));
        }
    }
    elements.iter().map(|element| format!("{},", element.trim_start())).collect()
}

#[cfg(test)]
mod tests {
    use super::{split, wrap};

    #[test]
    fn a_long_line_is_wrapped_and_begins_no_list() {
        assert_eq!(wrap("one two three", 9), ["one two", "three"]);
        assert_eq!(wrap("one two - three 4. five", 9), ["one two -", "three 4.", "five"]);
        assert_eq!(wrap("one two 1. three", 7), ["one", "two 1.", "three"]);
        assert_eq!(wrap("| one | two |", 5), ["| one | two |"]);
        assert_eq!(wrap("", 5), [""]);
    }

    #[test]
    fn generic_arguments_are_split_at_the_outermost_commas() {
        assert_eq!(split("A<B, C<D>>, _"), ["A<B, C<D>>,", "_,"]);
        assert_eq!(split("A"), ["A,"]);
    }
}
