//! Group `c-abi`: trace points of the C library beside Perfetto's own library, in one program that
//! runs with either; and the sizes of both.

mod contender;
mod libraries;

use crate::options::Options;
use crate::row::{Of, Row};
use crate::samples::Time;
use crate::stats;
use contender::Contender;
use libraries::{Flavour, Libraries, Optimised};

const GROUP: &str = "c-abi";
const PEER: &str = "libperfetto_c";

/// Reach for a disabled trace point, as a ratio: both libraries test one word.
const MAX_DISABLED: f64 = 1.05;
const MAX_ENABLED: f64 = 0.6;
const MAX_SIZE: f64 = 1.0;

/// The cases of the program, with the ratios that are asked for.
const CASES: [(&str, Option<f64>); 19] = [
    ("disabled trace point", Some(MAX_DISABLED)),
    ("disabled trace point with two annotations", Some(MAX_DISABLED)),
    ("disabled data source", Some(MAX_DISABLED)),
    ("disabled trace point, called", None),
    ("disabled data source, called", None),
    ("instant", Some(MAX_ENABLED)),
    ("slice pair", Some(MAX_ENABLED)),
    ("counter", Some(MAX_ENABLED)),
    ("low level by hand", Some(MAX_ENABLED)),
    ("data source packet", Some(MAX_ENABLED)),
    ("instant with int64", Some(MAX_ENABLED)),
    ("instant with int64 and 15-byte string", Some(MAX_ENABLED)),
    ("slice pair with int64 and 15-byte string", Some(MAX_ENABLED)),
    ("instant with six annotations", Some(MAX_ENABLED)),
    ("instant on a named track", None),
    ("instant with flow", None),
    ("instant with proto fields", None),
    ("instant with dynamic name", None),
    ("instant of a dynamic category", None),
];

pub(crate) fn run(options: &Options) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for flavour in Flavour::ALL {
        let libraries = Libraries::build(flavour)?;
        let program = libraries.program()?;
        let mut ours = Contender::new("ours", program.clone(), libraries.ours());
        let theirs = libraries.upstream(Optimised::ForSpeed).map(|folder| Contender::new(PEER, program, folder));
        let mut theirs = theirs.inspect_err(|error| eprintln!("bench: without {PEER}: {error}")).ok();
        for round in 1..=options.rounds {
            eprintln!("bench: c-abi, {}, round {round} of {}", flavour.name(), options.rounds);
            for contender in std::iter::once(&mut ours).chain(&mut theirs) {
                contender.time()?;
            }
        }
        rows.extend(costs(flavour, &ours, theirs.as_ref()));
        rows.extend(sizes(flavour, &libraries)?);
    }
    Ok(rows)
}

fn costs(flavour: Flavour, ours: &Contender, theirs: Option<&Contender>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (threads, time, with) in [(1, Time::Wall, ""), (2, Time::Cpu, ", two threads, CPU time")] {
        for (case, reach) in CASES {
            for (statistic, of) in stats::BOTH {
                let Some(value) = ours.value(case, threads, time, of) else { continue };
                let name = format!("{}: {case}{with}, {statistic}", flavour.name());
                let theirs = theirs.and_then(|theirs| theirs.value(case, threads, time, of));
                let row = Row::new(GROUP, name, "ns/op", value).beside(PEER, theirs);
                // Reaches hold for medians on one thread: two threads leave no CPU to the services.
                let reach = reach.filter(|_| statistic == "median" && threads == 1);
                rows.push(reach.map_or(row.clone(), |reach| row.reach(Of::Peer, reach)));
            }
        }
    }
    rows
}

fn sizes(flavour: Flavour, libraries: &Libraries) -> Result<Vec<Row>, String> {
    let ours = libraries::size_kb(&libraries.ours())?;
    let mut rows = Vec::new();
    for optimised in Optimised::ALL {
        let theirs = libraries.upstream(optimised).and_then(|folder| libraries::size_kb(&folder));
        let theirs = theirs.inspect_err(|error| eprintln!("bench: without the size of {PEER}: {error}")).ok();
        let case = format!("{}: stripped library, to upstream's at {}", flavour.name(), optimised.name());
        rows.push(Row::new(GROUP, case, "KB", ours).beside(PEER, theirs).reach(Of::Peer, MAX_SIZE));
    }
    Ok(rows)
}
