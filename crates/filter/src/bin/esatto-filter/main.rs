//! Compiles `.proto` files to filters, shows filters, and applies them to files.

#![forbid(unsafe_code)]

mod filtered_file;
mod output;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, ValueEnum};
use esatto_filter::{AllowList, EcmaScript, Filter, Options, Policy, Program, Rule, StringFilter, Usage, Version};

use filtered_file::{Kind, filter_file};
use output::Output;

/// Strips protobuf messages down to an allow-list of fields.
#[derive(Debug, Parser)]
#[command(name = "esatto-filter", version, arg_required_else_help = true)]
enum Cli {
    /// Make a filter that allows the fields of a .proto file
    Compile(Compile),
    /// List the fields of a .proto file that would be allowed
    List(Schema),
    /// Show the content of a filter
    Show(Loaded),
    /// Filter a trace, or a file that is another message
    ///
    /// The packets in compressed packets of a trace are filtered, and written uncompressed. So are
    /// those of a trace that is gzipped as a whole. If anything fails, no result is written.
    Apply(Apply),
}

#[derive(Debug, Args)]
struct Schema {
    /// The .proto files
    #[arg(required = true, value_name = "PROTO")]
    files: Vec<PathBuf>,
    /// A folder in which files and imports are looked up [default: the current one]
    #[arg(short = 'I', long = "include", value_name = "FOLDER")]
    includes: Vec<PathBuf>,
    /// Full name of the message to be filtered [default: the first in the first file]
    #[arg(short, long, default_value = "", hide_default_value = true)]
    root: String,
    /// A field to exclude, or a message to exclude wherever it occurs
    #[arg(long, value_name = "NAME")]
    exclude: Vec<String>,
    /// A nested message that passes with all its fields
    #[arg(long, value_name = "NAME")]
    pass: Vec<String>,
    /// A string field that goes through string rules, and its semantic type
    #[arg(long, value_name = "NAME[=TYPE]", value_parser = parse_string)]
    string: Vec<(String, u32)>,
    /// Merge messages that allow the same fields
    #[arg(long)]
    dedupe: bool,
}

#[derive(Debug, Args)]
struct Compile {
    #[command(flatten)]
    schema: Schema,
    /// The oldest services that must understand the filter
    #[arg(long, value_enum, default_value = "v2")]
    target: Target,
    /// Write a part of a trace config, in text format
    #[arg(long)]
    text: bool,
    /// The file for the filter [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The file for the overlay, if there is one; with --text the config contains it
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    overlay_out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Target {
    V1,
    V2,
    V54,
}

#[derive(Debug, Args)]
struct Loaded {
    /// The filter
    #[arg(short, long, value_name = "FILE")]
    filter: PathBuf,
    /// Its overlay
    #[arg(long, value_name = "FILE")]
    overlay: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Apply {
    #[command(flatten)]
    filter: Loaded,
    /// Fields that lead from the filter's root to the message in the file: 1 for a packet of a
    /// trace
    #[arg(long, value_name = "FIELD,…", value_delimiter = ',')]
    root: Vec<u32>,
    /// Do not look for compressed packets: fields 50 and 133 of the messages in field 1 are
    /// ordinary fields
    #[arg(long)]
    not_a_trace: bool,
    /// A rule for strings: policy, atrace prefix (may be empty), ECMAScript regular expression.
    /// Policy 1 redacts the groups of a match; policy 3 keeps a match unchanged; 2 and 4 do the
    /// same for atrace strings; 5 redacts the groups of every match in an atrace string
    #[arg(long, num_args = 3, value_names = ["POLICY", "PREFIX", "REGEX"])]
    rule: Vec<String>,
    /// Print how often each field occurred, negative if it was dropped
    #[arg(long)]
    usage: bool,
    /// The trace or message
    input: PathBuf,
    /// The file for the result; only with --usage it may be left out
    #[arg(required_unless_present = "usage")]
    output: Option<PathBuf>,
}

fn main() -> ExitCode {
    let result = match Cli::parse() {
        Cli::Compile(args) => compile(&args),
        Cli::List(schema) => read_schema(&schema).and_then(|list| print(&list.to_string())),
        Cli::Show(filter) => load(&filter).and_then(|program| print(&program.to_string())),
        Cli::Apply(args) => apply(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("esatto-filter: {message}");
            ExitCode::FAILURE
        }
    }
}

fn compile(args: &Compile) -> Result<(), String> {
    let version = match args.target {
        Target::V1 => Version::V1,
        Target::V2 => Version::V2,
        Target::V54 => Version::V54,
    };
    let list = read_schema(&args.schema)?;
    let compiled = list.bytecode(version).map_err(|error| error.to_string())?;
    if version == Version::V1 {
        for (name, string) in list.filtered_strings() {
            let fate = if string.pass_in_v1 { "passes unchanged" } else { "is not allowed" };
            eprintln!("esatto-filter: version 1 has no string rules: `{name}` {fate}");
        }
    }
    if args.text {
        // Services without string rules read this field, which every service has.
        let field = if version == Version::V1 { "bytecode" } else { "bytecode_v2" };
        let mut text = format!("trace_filter {{\n  {field}: \"{}\"\n", escape(&compiled.bytecode));
        if !compiled.overlay.is_empty() {
            let _ = writeln!(text, "  bytecode_overlay_v54: \"{}\"", escape(&compiled.overlay));
        }
        text.push_str("}\n");
        return write_to(args.out.as_deref(), text.as_bytes());
    }
    if args.overlay_out.is_none() && !compiled.overlay.is_empty() {
        return Err("there are strings with semantic types: name a file for the overlay with --overlay-out, or use \
                    --target v54"
            .to_owned());
    }
    write_to(args.out.as_deref(), &compiled.bytecode)?;
    args.overlay_out.as_ref().map_or(Ok(()), |path| write(path, &compiled.overlay))
}

fn apply(args: &Apply) -> Result<(), String> {
    let mut strings = StringFilter::new();
    for rule in args.rule.chunks_exact(3) {
        let number = rule[0].parse().map_err(|_| format!("`{}` is not the number of a policy", rule[0]))?;
        let rule = Policy::from_number(number)
            .and_then(|policy| Rule::new(&EcmaScript, policy, rule[2].as_bytes()))
            .map(|compiled| compiled.atrace_payload_starts_with(rule[1].as_bytes()));
        rule.and_then(|rule| strings.add(rule)).map_err(|error| error.to_string())?;
    }
    let program = load(&args.filter)?;
    let kind = if args.not_a_trace { Kind::Other } else { Kind::new(&program, &args.root) };
    let filter = Filter::new(program).with_strings(strings).with_root(&args.root);
    let mut filter = filter.map_err(|error| error.to_string())?;
    if args.usage {
        filter = filter.with_usage();
    }
    let input = read(&args.input)?;
    let mut output = Output::create(args.output.as_deref())?;
    filter_file(&mut filter, kind, &input, &mut output)
        .map_err(|error| format!("{}: {error}{}", args.input.display(), text_hint(&input)))?;
    output.finish()?;
    if filter.strings_given_up() > 0 {
        eprintln!("esatto-filter: {} strings were overwritten whole, rules took too long", filter.strings_given_up());
    }
    let mut text = String::new();
    for (path, count) in filter.usage().into_iter().flat_map(Usage::iter) {
        let path: Vec<String> = Usage::fields(path).map(|field| field.to_string()).collect();
        let _ = writeln!(text, "{count:>10} {}", path.join("."));
    }
    print(&text)
}

fn read_schema(schema: &Schema) -> Result<AllowList, String> {
    let mut options = Options::new();
    for name in &schema.exclude {
        options = options.exclude(name);
    }
    for name in &schema.pass {
        options = options.pass(name);
    }
    for (name, semantic_type) in &schema.string {
        options = options.filter_string(name, *semantic_type);
    }
    let mut includes = schema.includes.clone();
    if includes.is_empty() {
        includes.push(PathBuf::from("."));
    }
    if schema.files.iter().any(|file| file.is_absolute()) {
        // An absolute path is found only below an absolute folder.
        for include in &mut includes {
            *include = std::path::absolute(&*include).map_err(|error| format!("{}: {error}", include.display()))?;
        }
        // Files that it imports may be beside it.
        let files = schema.files.iter().filter(|file| file.is_absolute());
        includes.extend(files.filter_map(|file| file.parent()).map(Path::to_owned));
    }
    let list = AllowList::from_files(&schema.files, &includes, &schema.root, &options);
    let mut list = list.map_err(|error| error.to_string())?;
    if schema.dedupe {
        list.dedupe();
    }
    Ok(list)
}

fn load(args: &Loaded) -> Result<Program, String> {
    let overlay = args.overlay.as_deref().map_or_else(|| Ok(Vec::new()), read)?;
    let filter = read(&args.filter)?;
    Program::load_with_overlay(&filter, &overlay)
        .map_err(|error| format!("{}: {error}{}", args.filter.display(), text_hint(&filter)))
}

/// Returns an explanation of an error, if a file is text: for example a config.
fn text_hint(bytes: &[u8]) -> &'static str {
    let is_text = |text: &str| !text.chars().any(|c| c.is_control() && !matches!(c, '\t' | '\n' | '\r'));
    match core::str::from_utf8(bytes).is_ok_and(is_text) && !bytes.is_empty() {
        true => "; the file is text, such as a config or a .proto file, and not encoded",
        false => "",
    }
}

/// As text format requires: octal, so that a following digit is not taken for a part of it.
fn escape(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 4), |mut text, byte| {
        let _ = write!(text, "\\{byte:03o}");
        text
    })
}

fn parse_string(text: &str) -> Result<(String, u32), String> {
    match text.split_once('=') {
        None => Ok((text.to_owned(), 0)),
        Some((name, number)) => {
            let number = number.parse().map_err(|_| format!("`{number}` is not a number"))?;
            Ok((name.to_owned(), number))
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}

fn write_to(path: Option<&Path>, bytes: &[u8]) -> Result<(), String> {
    match path {
        Some(path) => write(path, bytes),
        None => std::io::stdout().lock().write_all(bytes).map_err(|error| format!("standard output: {error}")),
    }
}

fn print(text: &str) -> Result<(), String> {
    write_to(None, text.as_bytes())
}
