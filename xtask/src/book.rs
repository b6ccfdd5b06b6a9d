//! The documentation as a book, and the checks of all Markdown pages: links, quoted code, paths.

use crate::{peers, shell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::{fs, io};

const USAGE: &str = "\
cargo xtask book [--check]

Checks the Markdown pages of the repository, then builds docs/ as a book in target/book/html.
--check only checks:

  - relative links lead to a file, and to a heading of it
  - docs/SUMMARY.md lists every page of docs/
  - code below '<!-- from FILE -->' is in that file
  - paths, files and functions that ARCHITECTURE.md names exist";

/// The program that builds the book, and the release that is known to work.
const MDBOOK: &str = "mdbook";
const MDBOOK_VERSION: &str = "0.5.2";

/// The table of contents of the book.
const SUMMARY: &str = "docs/SUMMARY.md";

/// The page whose code spans are paths.
const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// Checks the pages, and builds the book unless `args` say `--check`.
///
/// # Errors
///
/// Every mistake, one per line, or mdbook's message.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let only_check = match args {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => return Err(USAGE.to_owned()),
    };
    let pages = Pages::read()?;
    pages.check()?;
    println!("book: {} pages, {} links", pages.texts.len(), pages.count_links());
    if only_check { Ok(()) } else { build(&pages) }
}

/// Every Markdown page that git knows, by its path from the root of the repository.
#[derive(Debug)]
struct Pages {
    texts: BTreeMap<PathBuf, String>,
}

impl Pages {
    fn read() -> Result<Self, String> {
        let mut list = Command::new("git");
        list.args(["ls-files", "--cached", "--others", "--exclude-standard", "--", "*.md"]);
        let list = shell::output(list.current_dir(shell::root()))?;
        // A deleted page is still in the list.
        let page = |path: &str| Some((path.into(), fs::read_to_string(shell::root().join(path)).ok()?));
        Ok(Self { texts: list.lines().filter_map(page).collect() })
    }

    fn count_links(&self) -> usize {
        self.texts.values().map(|text| links(text).len()).sum()
    }

    fn check(&self) -> Result<(), String> {
        let mut mistakes = Vec::new();
        for (page, text) in &self.texts {
            for link in links(text) {
                if let Err(error) = self.follow(page, &text[link.target.clone()]) {
                    mistakes.push(format!("{}:{}: {error}", page.display(), line_of(text, link.target.start)));
                }
            }
            for (line, error) in misquoted(text) {
                mistakes.push(format!("{}:{line}: {error}", page.display()));
            }
        }
        mistakes.extend(self.unlisted().map(|page| format!("docs/SUMMARY.md: {} is not listed", page.display())));
        if let Some(text) = self.texts.get(Path::new(ARCHITECTURE)) {
            let missing = paths(text).filter(|(_, path)| !is_path(path));
            mistakes.extend(missing.map(|(line, path)| format!("{ARCHITECTURE}:{line}: there is no {path}")));
            mistakes.extend(lost_files(text).map(|(line, lost)| format!("{ARCHITECTURE}:{line}: {lost}")));
            mistakes.extend(lost_functions(text).map(|(line, lost)| format!("{ARCHITECTURE}:{line}: {lost}")));
        }
        if mistakes.is_empty() { Ok(()) } else { Err(mistakes.join("\nxtask: ")) }
    }

    /// Checks that a relative link of `page` leads somewhere.
    fn follow(&self, page: &Path, target: &str) -> Result<(), String> {
        if is_elsewhere(target) {
            return Ok(());
        }
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let path = if file.is_empty() { page.to_owned() } else { beside(page, file) };
        if !shell::root().join(&path).exists() {
            return Err(format!("the link to {target} leads to {}, which does not exist", path.display()));
        }
        let found = match self.texts.get(&path) {
            Some(text) if !anchor.is_empty() => anchors(text).contains(anchor),
            _ => true,
        };
        if found { Ok(()) } else { Err(format!("{} has no heading #{anchor}", path.display())) }
    }

    /// Pages that the table of contents lists.
    fn listed(&self) -> BTreeSet<PathBuf> {
        let summary = Path::new(SUMMARY);
        let text = self.texts.get(summary).map_or("", String::as_str);
        links(text).into_iter().map(|link| beside(summary, &text[link.target])).collect()
    }

    /// Pages of docs/ that are not in the table of contents.
    fn unlisted(&self) -> impl Iterator<Item = &PathBuf> {
        let listed = self.listed();
        let is_page = |page: &&PathBuf| page.starts_with("docs") && !page.starts_with("docs/spec/captures");
        self.texts.keys().filter(is_page).filter(move |page| *page != Path::new(SUMMARY) && !listed.contains(*page))
    }
}

/// A link of a page: `[text](target)`, as ranges of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Link {
    /// With the brackets.
    text: Range<usize>,
    target: Range<usize>,
}

/// Finds the links of a page, in order. Links in code are none.
fn links(page: &str) -> Vec<Link> {
    let mut found = Vec::new();
    let code = code(page);
    let mut from = 0;
    while let Some(at) = page[from..].find("](").map(|at| from + at) {
        from = at + 2;
        if code.iter().any(|range| range.contains(&at)) {
            continue;
        }
        let (Some(open), Some(close)) = (opening(page, at), page[from..].find(')')) else { continue };
        found.push(Link { text: open..at + 1, target: from..from + close });
    }
    found
}

/// Finds the bracket that the one at `close` closes.
fn opening(page: &str, close: usize) -> Option<usize> {
    let mut depth = 1_usize;
    for (at, byte) in page.as_bytes()[..close].iter().enumerate().rev() {
        match byte {
            b']' => depth += 1,
            b'[' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Ranges of a page that are code: fenced blocks, and spans of a line or two.
fn code(page: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let (mut at, mut fence, mut span) = (0, None, None);
    for line in page.split_inclusive('\n') {
        let words = line.trim();
        let is_fence = words.starts_with("```") || words.starts_with("~~~");
        match (is_fence, fence) {
            (true, None) => fence = Some(at),
            (true, Some(start)) => {
                found.push(start..at + line.len());
                fence = None;
            }
            (false, Some(_)) => {}
            (false, None) => {
                if words.is_empty() {
                    // A span ends with its paragraph.
                    span = None;
                }
                for (column, _) in line.match_indices('`') {
                    match span.take() {
                        None => span = Some(at + column),
                        Some(start) => found.push(start..at + column + 1),
                    }
                }
            }
        }
        at += line.len();
    }
    found
}

/// The anchors of a page's headings, as GitHub and mdbook make them.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut seen = BTreeMap::<String, usize>::new();
    let mut found = BTreeSet::new();
    let mut in_code = false;
    for line in page.lines() {
        in_code ^= line.starts_with("```");
        let title = line.trim_start_matches('#');
        if in_code || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let slug: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase();
        let count = seen.entry(slug.clone()).or_default();
        found.insert(if *count == 0 { slug } else { format!("{slug}-{count}") });
        *count += 1;
    }
    found
}

/// Blocks below `<!-- from FILE -->` that differ from the file, by line. Indentation does not
/// count.
fn misquoted(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut lines = (1..).zip(page.lines());
    while let Some((number, line)) = lines.next() {
        let Some(file) = line.strip_prefix("<!-- from ").and_then(|rest| rest.strip_suffix(" -->")) else { continue };
        let quote: Vec<&str> =
            lines.by_ref().map(|(_, line)| line.trim()).skip(1).take_while(|line| !line.starts_with("```")).collect();
        let source = fs::read_to_string(shell::root().join(file)).unwrap_or_default();
        let source: Vec<&str> = source.lines().map(str::trim).collect();
        if quote.is_empty() || !source.windows(quote.len()).any(|window| window == quote) {
            found.push((number, format!("the code below is not in {file}")));
        }
    }
    found
}

/// Code spans of a page that are paths: a word with a slash, and a suffix or a slash
/// at the end; or the name of a source file.
fn paths(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let spans = code(page).into_iter().map(|range| (line_of(page, range.start), page[range].trim_matches('`')));
    spans.filter(|(_, span)| {
        let is_word = span.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-'));
        let suffix = Path::new(span).extension();
        let is_path = span.contains('/') && (span.ends_with('/') || suffix.is_some());
        is_word && (is_path || suffix.is_some_and(|suffix| suffix == "rs"))
    })
}

/// Says if a path of the page exists: from the root, or in the sources of a crate.
fn is_path(path: &str) -> bool {
    let root = shell::root();
    let crates = || fs::read_dir(root.join("crates")).into_iter().flatten().flatten();
    root.join(path).exists() || crates().any(|folder| folder.path().join("src").join(path).exists())
}

/// Source files in the last column of a table that are in none of the crates in the first one.
fn lost_files(page: &str) -> impl Iterator<Item = (usize, String)> {
    (1..).zip(page.lines()).filter(|(_, line)| line.starts_with('|')).flat_map(|(number, line)| {
        let mut cells = line.trim_matches('|').split('|');
        let (first, last) = (cells.next().unwrap_or_default(), cells.next_back().unwrap_or_default());
        let folder = |name: &str| shell::root().join("crates").join(name).join("src");
        let folders: Vec<PathBuf> = spans(first).map(folder).filter(|path| path.exists()).collect();
        let files = spans(last).filter(|file| file.ends_with(".rs") && !folders.is_empty());
        let lost = files.filter(|file| !folders.iter().any(|folder| folder.join(file).exists()));
        lost.map(|file| (number, format!("there is no {file} in the crate of its row"))).collect::<Vec<_>>()
    })
}

/// Functions of a table that are not in the file of their row. A function is a code span that ends
/// in `()`, a macro one that ends in `!`.
fn lost_functions(page: &str) -> impl Iterator<Item = (usize, String)> {
    (1..).zip(page.lines()).filter(|(_, line)| line.starts_with('|')).flat_map(|(number, line)| {
        let spans: Vec<&str> = spans(line).collect();
        let file = spans.last().copied().filter(|file| file.ends_with(".rs")).unwrap_or_default();
        let source = fs::read_to_string(shell::root().join(file)).unwrap_or_default();
        let needle = |span: &str| match (span.strip_suffix("()"), span.strip_suffix('!')) {
            (Some(function), _) => Some(format!("fn {}", function.rsplit("::").next().unwrap_or(function))),
            (_, Some(name)) if name.starts_with("__") => Some(format!("macro_rules! {name}")),
            _ => None,
        };
        let needles = spans.into_iter().filter_map(needle).collect::<Vec<_>>();
        let lost = needles.into_iter().filter(move |needle| !source.contains(needle.as_str()));
        lost.map(move |needle| (number, format!("there is no '{needle}' in {file}"))).collect::<Vec<_>>()
    })
}

/// Code spans of a line.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn line_of(page: &str, at: usize) -> usize {
    page[..at].matches('\n').count() + 1
}

/// Says if a link leads out of the repository, or to an item in rustdoc.
fn is_elsewhere(target: &str) -> bool {
    target.contains("::") || target.contains("://") || target.starts_with("mailto:")
}

/// The path of a file that `page` calls `target`.
fn beside(page: &Path, target: &str) -> PathBuf {
    let mut path = page.parent().map_or_else(PathBuf::new, Path::to_owned);
    for part in Path::new(target.split('#').next().unwrap_or_default()).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

// ---- The book ----

/// Builds the book with mdbook, which it installs if need be. Outside CI, a machine that cannot
/// install it skips that.
fn build(pages: &Pages) -> Result<(), String> {
    let mdbook = match mdbook() {
        Ok(mdbook) => mdbook,
        Err(error) if shell::in_ci() => return Err(error),
        Err(error) => {
            println!("SKIP book: {error}");
            return Ok(());
        }
    };
    let book = shell::target_dir().join("book");
    stage(pages, &book).map_err(|error| format!("cannot write {}: {error}", book.display()))?;
    shell::run(Command::new(mdbook).args(["build", "--dest-dir"]).args([&book.join("html"), &book]))?;
    println!("book: {}", book.join("html/index.html").display());
    Ok(())
}

/// The program mdbook of the version that is known to work.
fn mdbook() -> Result<PathBuf, String> {
    let folder = peers::folder()?.join(MDBOOK);
    let program = folder.join("bin").join(MDBOOK);
    let version = || shell::output(Command::new(&program).arg("--version"));
    if program.exists() && version()?.contains(MDBOOK_VERSION) {
        return Ok(program);
    }
    let mut install = shell::cargo();
    install.args(["install", MDBOOK, "--locked", "--version", MDBOOK_VERSION, "--force", "--root"]).arg(&folder);
    install.args(["--no-default-features", "--features", "search"]);
    // Its own programs need no settings of this workspace.
    shell::run(install.env_remove("RUSTFLAGS").current_dir(peers::folder()?))?;
    Ok(program)
}

/// Copies docs/ to `book`, with the pages outside docs/ that it links to.
fn stage(pages: &Pages, book: &Path) -> io::Result<()> {
    let source = book.join("src");
    if source.exists() {
        fs::remove_dir_all(&source)?;
    }
    copy(&shell::root().join("docs"), &source)?;
    fs::rename(source.join("book.toml"), book.join("book.toml"))?;
    let mut listed = pages.listed();
    listed.insert(SUMMARY.into());
    for page in &listed {
        let target = source.join(staged(page));
        fs::create_dir_all(target.parent().unwrap_or(&source))?;
        let text = pages.texts.get(page).map_or("", String::as_str);
        fs::write(target, relinked(&listed, page, text))?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Where a page of the repository is in the book's sources.
fn staged(page: &Path) -> PathBuf {
    match page.strip_prefix("docs") {
        Ok(page) => page.to_owned(),
        // mdbook gives each README the name of an index, without its links.
        Err(_) if page.ends_with("README.md") => {
            Path::new("project").join(page.parent().unwrap_or(page)).with_extension("md")
        }
        Err(_) => Path::new("project").join(page),
    }
}

/// The text of a page, with links to where the listed pages are in the book. A link to anything
/// else becomes its text.
fn relinked(listed: &BTreeSet<PathBuf>, page: &Path, text: &str) -> String {
    let mut out = String::new();
    let mut copied = 0;
    for link in links(text) {
        let target = &text[link.target.clone()];
        let path = beside(page, target);
        let stays = page.starts_with("docs") && is_in_docs(&path);
        if is_elsewhere(target) || target.starts_with('#') || stays {
            continue;
        }
        let words = &text[link.text.clone()];
        out.push_str(&text[copied..link.text.start]);
        copied = link.target.end + 1;
        if listed.contains(&path) {
            let up = "../".repeat(staged(page).components().count() - 1);
            let anchor = target.find('#').map_or("", |at| &target[at..]);
            let page = staged(&path);
            let page = if page.ends_with("README.md") { page.with_file_name("index.md") } else { page };
            out.push_str(&format!("{words}({up}{}{anchor})", page.display()));
        } else if is_in_docs(&path) {
            let up = "../".repeat(staged(page).components().count() - 1);
            out.push_str(&format!("{words}({up}{})", staged(&path).display()));
        } else {
            out.push_str(words.trim_start_matches('[').trim_end_matches(']'));
        }
    }
    out.push_str(&text[copied..]);
    out
}

/// Says if a file is below docs/, and not below a symbolic link there.
fn is_in_docs(path: &Path) -> bool {
    let docs = shell::root().join("docs");
    match (shell::root().join(path).canonicalize(), docs.canonicalize()) {
        (Ok(path), Ok(docs)) => path.starts_with(docs),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(page: &str) -> Vec<&str> {
        links(page).into_iter().map(|link| &page[link.target]).collect()
    }

    #[test]
    fn links_in_code_are_none() {
        let page = "[a](b.md) `[c](d.md)` [`e`](f.md#g)\n```\n[h](i.md)\n```\n![j](k.png)";
        assert_eq!(targets(page), ["b.md", "f.md#g", "k.png"]);
    }

    #[test]
    fn an_anchor_is_the_heading_in_lower_case() {
        let page = "# The `book`\n```\n# No heading\n```\n## 3. What: a-b\n## The book\n#no\n";
        assert_eq!(anchors(page).into_iter().collect::<Vec<_>>(), ["3-what-a-b", "the-book", "the-book-1"]);
    }

    #[test]
    fn targets_are_relative_to_their_page() {
        assert_eq!(beside(Path::new("docs/how-to/a.md"), "../spec/b.md#c"), Path::new("docs/spec/b.md"));
        assert_eq!(beside(Path::new("README.md"), "./docs"), Path::new("docs"));
    }

    #[test]
    fn paths_of_code_spans_are_found() {
        let page = "`crates/a/src/b.rs`, `fn a()`, `c/`, `a/b`, `x.rs`\n`ipc::sys`";
        assert_eq!(paths(page).collect::<Vec<_>>(), [(1, "crates/a/src/b.rs"), (1, "c/"), (1, "x.rs")]);
    }

    #[test]
    fn files_of_a_crate_are_in_its_folder() {
        let page = "| `map` | maps | `lib.rs` |\n| `shm`, `ipc` | memory | `host.rs`, `frame/mod.rs` |\n\
                    | `map`, `log` | `no.rs` | `worker.rs` |\n| an option | `map` | `worker.rs` |";
        let lost = "there is no worker.rs in the crate of its row".to_owned();
        assert_eq!(lost_files(page).collect::<Vec<_>>(), [(3, lost)]);
    }
}
