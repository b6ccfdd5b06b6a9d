//! An export that is killed at any point: no half trace is ever visible, and the next export
//! completes it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use esatto_lake::{Lake, TraceEntry};

use crate::{all_traces, check, command, contents, csv, export, folder};

/// Exports that are killed.
const KILLS: u32 = 100;

/// Numbers from a seed (xorshift).
struct Random(u64);

impl Random {
    fn new() -> Self {
        let given = std::env::var("ESATTO_SEED").ok().and_then(|seed| seed.parse().ok());
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64 | 1);
        let seed = given.unwrap_or_else(now);
        eprintln!("ESATTO_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// The rows of the tables of each trace, by the trace's hash.
type Rows = BTreeMap<String, Vec<(String, i64)>>;

fn rows_of(entry: &TraceEntry) -> Vec<(String, i64)> {
    entry.tables.iter().map(|file| (file.name.clone(), file.rows)).collect()
}

fn entries(lake: &Path) -> Vec<TraceEntry> {
    Lake::open(&lake.to_string_lossy()).and_then(|lake| lake.entries()).expect("it is a lake")
}

/// Checks a lake whose export was killed. Returns how many traces are visible.
fn check_after_kill(lake: &Path, whole: &Rows) -> usize {
    if !lake.join("lake.json").exists() {
        // There is no lake yet, so nothing is visible.
        assert!(contents(lake).iter().all(|(name, _)| name.starts_with('_')), "{lake:?}");
        return 0;
    }
    // The check reads all files. Interrupted exports are told, and nothing else is wrong.
    let report = check(lake);
    for problem in &report.problems {
        assert!(problem.text.starts_with("an export was interrupted: "), "{problem:?}");
    }
    let entries = entries(lake);
    for entry in &entries {
        assert_eq!(whole.get(&entry.sha256), Some(&rows_of(entry)), "{} is not whole", entry.trace_file);
    }
    assert_eq!(report.traces, entries.len());
    entries.len()
}

#[test]
fn no_half_trace_is_ever_visible() {
    let folder = folder("kills");
    let traces: Vec<&str> = all_traces().iter().map(String::as_str).collect();
    let reference = folder.join("reference");
    let start = Instant::now();
    export(&traces, &reference, &[]);
    let whole_time = u64::try_from(start.elapsed().as_micros()).expect("it is short");
    let whole: Rows = entries(&reference).iter().map(|entry| (entry.sha256.clone(), rows_of(entry))).collect();
    assert!(whole.len() >= 15, "{}", whole.len());

    let mut random = Random::new();
    let mut lake_number = 0;
    let mut lake = folder.join("0");
    let (mut kills, mut in_between, mut resumed) = (0, 0, 0);
    while kills < KILLS {
        let place = lake.to_string_lossy().into_owned();
        let mut args = vec!["export"];
        args.extend(&traces);
        let jobs = (1 + random.below(3)).to_string();
        args.extend(["--to", &place, "--jobs", &jobs, "--partition", "date,host"]);
        let mut child = command(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program runs");
        // Every second time at any moment, else while files of a trace are put in place.
        if kills % 2 == 0 {
            std::thread::sleep(Duration::from_micros(random.below(whole_time)));
        } else {
            wait_for_row(&lake, random.below(4), &mut child);
            std::thread::sleep(Duration::from_micros(random.below(5000)));
        }
        child.kill().expect("it can be killed");
        let output = child.wait_with_output().expect("it ends");
        kills += u32::from(output.status.code().is_none());
        if !lake.exists() {
            continue;
        }
        let visible = check_after_kill(&lake, &whole);
        in_between += u32::from(visible > 0 && visible < whole.len());
        // From time to time, an export that is not killed, also over what a kill has left.
        if visible == whole.len() || random.below(4) == 0 {
            let before = contents(&lake);
            export(&traces, &lake, &["--quiet"]);
            let after = contents(&lake);
            let is_kept = |(name, bytes): &(String, Vec<u8>)| {
                name.starts_with('_') || after.iter().any(|(other, now)| other == name && now == bytes)
            };
            assert!(before.iter().all(is_kept), "a file of a trace has changed");
            let report = check(&lake);
            assert_eq!((report.traces, &report.problems[..]), (whole.len(), &[][..]));
            assert!(after.iter().all(|(name, _)| !name.starts_with("_staging")), "staging is empty");
            let sql = "select trace_file, count(*), sum(dur) from slice group by 1 order by 1";
            assert_eq!(csv(&[&place], sql), csv(&[&reference.to_string_lossy()], sql));
            resumed += 1;
            std::fs::remove_dir_all(&lake).expect("a folder can be removed");
            lake_number += 1;
            lake = folder.join(lake_number.to_string());
        }
    }
    eprintln!("{kills} kills, {in_between} with a part of the traces visible, {resumed} lakes completed");
    assert!(in_between >= 10 && resumed >= 5, "{in_between} {resumed}: the kills came too early or too late");
}

/// Waits until so many traces are about to be put in place.
fn wait_for_row(lake: &Path, count: u64, child: &mut std::process::Child) {
    let mut seen = std::collections::HashSet::new();
    while seen.len() as u64 <= count && child.try_wait().expect("it can be asked").is_none() {
        for entry in std::fs::read_dir(lake.join("_staging")).into_iter().flatten().flatten() {
            if entry.path().join("row.parquet").exists() {
                seen.insert(entry.file_name());
            }
        }
    }
}
