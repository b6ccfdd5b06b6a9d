//! Memory and wake-ups of an idle service.

use std::path::Path;
use std::time::Duration;

use super::participants::{Kind, Service};
use super::{GROUP, PEER, process};
use crate::options::Options;
use crate::row::{Of, Row};

/// Wake-ups are counted for this long.
const REST: Duration = Duration::from_secs(10);

pub(super) fn rows(_: &Options, kinds: &[Kind]) -> Result<Vec<Row>, String> {
    eprintln!("bench: service idle, {} s", REST.as_secs());
    let services = kinds.iter().map(Service::start).collect::<Result<Vec<_>, _>>()?;
    // Both sockets have just been tried: let that be over.
    std::thread::sleep(Duration::from_secs(1));
    let before = services.iter().map(Service::rest).collect::<Result<Vec<_>, _>>()?;
    std::thread::sleep(REST);
    let after = services.iter().map(Service::rest).collect::<Result<Vec<_>, _>>()?;

    let row = |case: &str, unit, value: &dyn Fn(usize) -> f64| {
        let row = Row::new(GROUP, format!("idle: {case}"), unit, value(0));
        row.beside(PEER, kinds.get(1).map(|_| value(1)))
    };
    let kb = |bytes: u64| bytes as f64 / 1000.0;
    let mut rows = vec![
        row("resident memory", "kB", &|of| kb(after[of].resident)).reach(Of::Peer, 1.0),
        row("anonymous memory", "kB", &|of| kb(after[of].anonymous)).reach(Of::Peer, 1.0),
        row("memory that is its own (PSS)", "kB", &|of| kb(after[of].proportional)),
        row("threads", "", &|of| after[of].threads as f64).reach(Of::Peer, 1.0),
    ];
    let wakeups = |of: usize| (after[of].switches - before[of].switches) as f64;
    rows.push(row("wake-ups in 10 s", "", &wakeups).reach(Of::Value, 0.0));
    let sizes = kinds.iter().map(|kind| program_size(&kind.program)).collect::<Result<Vec<_>, _>>()?;
    rows.push(row("program, stripped, with its own libraries", "kB", &|of| kb(sizes[of])));
    Ok(rows)
}

/// Bytes of the program. Perfetto's is a script around one that has all of its code in a library.
fn program_size(program: &Path) -> Result<u64, String> {
    let size =
        |path: &Path| std::fs::metadata(path).map(|meta| meta.len()).map_err(|e| format!("{}: {e}", path.display()));
    let installed = program.parent().and_then(Path::parent).map(|folder| folder.join("official"));
    match installed.filter(|folder| folder.exists()) {
        Some(folder) => Ok(size(&folder.join("exe/traced"))? + size(&folder.join("lib/libperfetto.so"))?),
        None => size(program),
    }
}

impl Service {
    fn rest(&self) -> Result<process::Rest, String> {
        process::rest(self.id())
    }
}
