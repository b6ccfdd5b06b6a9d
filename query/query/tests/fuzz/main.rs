//! Random queries: rows of this engine over raw traces and over a lake, beside those of DuckDB over
//! the same Parquet; and parts of queries that must make up the whole.
//!
//! `ESATTO_QUERY_FUZZ_SEEDS` is the number of seeds, `ESATTO_QUERY_FUZZ_FROM` the first one.

mod dialect;
mod duckdb;
mod expressions;
#[path = "../queries/peer.rs"]
#[expect(dead_code, reason = "this test has another peer")]
mod peer;
mod queries;
mod random;
mod rows;
mod schema;
#[path = "../queries/traces.rs"]
#[expect(dead_code, reason = "files tell traces apart here")]
mod traces;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dialect::Dialect;
use duckdb::DuckDb;
use esatto_lake::{ExportOptions, Exporter, Lake};
use esatto_query::{Broken, Options, Session, Traces};
use expressions::Generator;
use futures::StreamExt as _;
use rows::Row;
use schema::Schema;
use tokio::runtime::Runtime;

/// Seeds, unless the environment says otherwise.
const SEEDS: u64 = 200;

/// Bytes of the largest trace: queries have to be fast without optimization.
const MAX_TRACE: u64 = 100_000;

/// Parts of the messages with which an engine refuses a query, with the reason. The query is passed
/// over then.
const REFUSALS: &[(&str, &str)] = &[
    ("Physical plan does not support logical expression InSubquery", "DataFusion has IN (SELECT …) in conditions only"),
    ("Physical plan does not support logical expression Exists", "DataFusion has EXISTS in conditions only"),
    ("Physical plan does not support logical expression ScalarSubquery", "DataFusion has none in aggregates"),
    ("Physical input schema should be the same as the one", "DataFusion is at odds with itself about what may be NULL"),
    ("Conflicting ordering requirements in aggregate functions", "DataFusion sorts for one aggregate only"),
    ("HAVING clause references: ", "DataFusion wants groups for a condition without columns"),
    ("Out of Range Error: Overflow in multiplication", "DuckDB moves the operation to rows that a condition excludes"),
    (
        "null_aware anti join only supports single column join key",
        "DataFusion has no NOT IN (SELECT …) with correlation",
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// The engines that are compared.
struct Engines {
    runtime: Runtime,
    /// This engine, with its names.
    sessions: Vec<(&'static str, Session)>,
    peer: DuckDb,
    lake: PathBuf,
}

impl Drop for Engines {
    fn drop(&mut self) {
        let _may_be_missing = std::fs::remove_dir_all(&self.lake);
    }
}

impl Engines {
    /// Exports the traces, and opens them in all engines.
    fn new(readers: &Path, name: &str) -> Self {
        let mut paths: Vec<PathBuf> = traces::all().into_iter().map(|trace| trace.path).collect();
        paths.retain(|path| std::fs::metadata(path).is_ok_and(|file| file.len() <= MAX_TRACE));
        assert!(paths.len() >= 4, "{paths:?}");
        let lake = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}-{}", std::process::id()));
        let _may_be_missing = std::fs::remove_dir_all(&lake);
        let place = lake.to_string_lossy().into_owned();
        let mut options = ExportOptions::default();
        // Numbers are in the order of the traces, so ids are those of a query.
        options.jobs = 1;
        let exporter = Exporter::open(&place, options, &|| {}).expect("a lake can be made");
        let report = exporter.run(&paths, &|_| {}).expect("traces can be exported");
        assert!(report.left_out.is_empty(), "{:?}", report.left_out);
        // Plans are deep in a build without optimization, so the caller's stack is large.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let mut sessions = Vec::new();
        for (of_traces, of_lake, threads) in
            [("traces, 1 thread", "lake, 1 thread", 1), ("traces, 3 threads", "lake, 3 threads", 3)]
        {
            let mut options = Options::default();
            options.threads = threads;
            options.has_trace_columns = true;
            let list = Traces::new(paths.clone(), Broken::Skip, 1 << 30).expect("there are few traces");
            sessions.push((of_traces, Session::new(list, &options).expect("a session")));
            let lake = Lake::open(&place).expect("it is a lake");
            let entries = lake.entries().expect("it has a catalogue");
            let session = runtime.block_on(Session::of_lake(&lake, entries, &options));
            sessions.push((of_lake, session.expect("a session")));
        }
        let peer = DuckDb::start(readers, &lake);
        Self { runtime, sessions, peer, lake }
    }

    /// Asks the session of a number.
    fn ask(&self, number: usize, sql: &str) -> Result<Vec<Row>, String> {
        ask(&self.runtime, &self.sessions[number].1, &Dialect::Esatto.render(sql))
    }
}

fn ask(runtime: &Runtime, session: &Session, sql: &str) -> Result<Vec<Row>, String> {
    let statements = session.prepare(sql).map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let answer = session.run(&statements[0]).await.map_err(|error| error.to_string())?;
        let mut answer = answer.ok_or("no rows")?;
        let mut all = Vec::new();
        while let Some(batch) = answer.rows.next().await {
            let batch = batch.map_err(|error| session.sql_error(&error).to_string())?;
            all.extend(rows::of_batch(&batch)?);
        }
        Ok(all)
    })
}

/// Results of many queries.
#[derive(Default)]
struct Findings {
    queries: u64,
    with_rows: u64,
    /// Refusals, and how many.
    refusals: BTreeMap<&'static str, u64>,
    differences: Vec<String>,
}

impl Findings {
    /// Notes an error; a refusal that is known is none.
    fn error(&mut self, place: &str, error: &str, sql: &str) {
        match REFUSALS.iter().find(|(part, _)| error.contains(part)) {
            Some((part, _)) => *self.refusals.entry(part).or_default() += 1,
            None => self.difference(format!("{place}: {error}\n  {sql}")),
        }
    }

    /// Notes a difference, and prints it at once: a run can be long.
    fn difference(&mut self, text: String) {
        println!("{text}");
        self.differences.push(text);
    }

    fn finish(self) {
        println!(
            "{} queries, {} of them with rows; refused: {:?}; {} differences",
            self.queries,
            self.with_rows,
            self.refusals,
            self.differences.len()
        );
        let refused: u64 = self.refusals.values().sum();
        assert!(self.differences.is_empty(), "{}", self.differences.join("\n"));
        // Few queries say little.
        if self.queries >= 100 {
            assert!(self.with_rows * 3 > self.queries, "many queries have rows");
            assert!(refused * 5 < self.queries, "few queries are refused");
        }
    }
}

/// Runs a test on a thread with a large stack, because plans are deep in a build without
/// optimization.
fn run(name: &'static str, test: fn(&mut Engines, &Schema, u64, &mut Findings)) {
    peer::skip(|| {
        let readers = duckdb::require()?;
        let work = move || {
            let mut engines = Engines::new(&readers, name);
            let schema = Schema::read(&mut engines.peer);
            let mut findings = Findings::default();
            let from = setting("ESATTO_QUERY_FUZZ_FROM", 0);
            for seed in from..from + setting("ESATTO_QUERY_FUZZ_SEEDS", SEEDS) {
                test(&mut engines, &schema, seed, &mut findings);
            }
            findings.finish();
        };
        let thread = std::thread::Builder::new().stack_size(256 << 20).spawn(work).expect("a thread");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(())
    });
}

#[test]
fn random_queries_have_the_rows_of_duckdb() {
    run("duckdb", |engines, schema, seed, findings| {
        let query = Generator::new(schema, seed).query();
        let sql = Dialect::Esatto.render(&query.sql);
        findings.queries += 1;
        let expected = match engines.peer.ask(&Dialect::DuckDb.render(&query.sql)) {
            Ok(rows) => rows,
            Err(error) => return findings.error(&format!("seed {seed}, DuckDB"), &error, &sql),
        };
        findings.with_rows += u64::from(!expected.is_empty());
        let threads = 2 * usize::from(seed % 2 == 1);
        for number in [threads, threads + 1] {
            let place = format!("seed {seed}, {}", engines.sessions[number].0);
            match engines.ask(number, &query.sql) {
                Ok(rows) => {
                    if let Some(difference) = rows::difference(&rows, &expected, query.is_ordered) {
                        findings.difference(format!("{place}: {difference}\n  {sql}"));
                    }
                }
                Err(error) => findings.error(&place, &error, &sql),
            }
        }
    });
}

/// A condition is true, false or unknown, so three queries make up the whole. And the rows that a
/// condition selects are as many as those for which it is true.
#[test]
fn parts_of_random_queries_make_up_the_whole() {
    run("parts", |engines, schema, seed, findings| {
        let mut generator = Generator::new(schema, seed);
        let (from, scope) = generator.source(1);
        let columns: Vec<String> = (0..2)
            .map(|_| {
                let kind = generator.any_type(&scope);
                generator.expr(&scope, kind, 1).sql
            })
            .collect();
        let condition = generator.truth(&scope, 3);
        let select = format!("select {} as a, {} as b from {from}", columns[0], columns[1]);
        let number = usize::try_from(seed % 4).expect("it is small");
        let place = format!("seed {seed}, {}", engines.sessions[number].0);
        findings.queries += 1;
        let mut ask = |sql: String| match engines.ask(number, &sql) {
            Ok(rows) => Some(rows),
            Err(error) => {
                findings.error(&place, &error, &Dialect::Esatto.render(&sql));
                None
            }
        };
        let parts = [
            ask(format!("{select} where {condition}")),
            ask(format!("{select} where not ({condition})")),
            ask(format!("{select} where ({condition}) is null")),
        ];
        let whole = ask(select.clone());
        let counts = ask(format!("select count(*) from {from} where {condition}"));
        let truths = ask(format!("select coalesce(sum(case when {condition} then 1 else 0 end), 0) from {from}"));
        let Some(whole) = whole else { return };
        findings.with_rows += u64::from(!whole.is_empty());
        let show = |difference: String| {
            format!("{place}: {difference}\n  {}", Dialect::Esatto.render(&format!("{select} where {condition}")))
        };
        if let [Some(a), Some(b), Some(c)] = parts {
            let parts = [a, b, c].concat();
            if let Some(difference) = rows::difference(&parts, &whole, false) {
                findings.difference(show(difference));
            }
        }
        if let (Some(counts), Some(truths)) = (counts, truths)
            && let Some(difference) = rows::difference(&counts, &truths, true)
        {
            findings.difference(show(difference));
        }
    });
}
