//! Group `probes`: the cost of the data sources of the operating system, Esatto's `traced_probes`
//! beside Perfetto's.
//!
//! Every part is a file of rows; it measures both programs in turn, in processes of their own. The
//! service is the same for both, so only the probes differ. Parts with ftrace record from a tracefs
//! instance of the bench, so other users of tracefs are not disturbed.

mod idle;
mod latency;
mod load;
mod losses;
mod participants;
mod recorded;
mod scans;
mod switches;
mod tracefs;

use crate::cargo;
use crate::options::Options;
use crate::row::Row;
use crate::service::participants::Kind;

use tracefs::TracefsInstance;

const GROUP: &str = "probes";
const PEER: &str = "traced_probes v56";

/// The programs that are measured.
struct Bench {
    service: Kind,
    /// Ours first, then the peer if it is there.
    probes: Vec<Kind>,
    /// `None` if there is no usable tracefs.
    tracefs: Option<TracefsInstance>,
}

/// A file of rows.
type Part = fn(&Options, &Bench) -> Result<Vec<Row>, String>;

/// Parts, and whether they need ftrace.
const PARTS: &[(&str, Part, bool)] = &[
    ("switches", switches::rows, true),
    ("losses", losses::rows, true),
    ("scans", scans::rows, false),
    ("idle", idle::rows, true),
    ("latency", latency::rows, true),
];

pub(crate) fn run(options: &Options) -> Result<Vec<Row>, String> {
    if let Some(unknown) = options.parts.iter().find(|part| !PARTS.iter().any(|(name, ..)| name == part)) {
        return Err(format!("group probes has no part '{unknown}'"));
    }
    eprintln!("bench: building the service and the probes");
    let service = match &options.traced {
        Some(program) => program.clone(),
        None => cargo::build_daemon()?,
    };
    let ours = cargo::build_shipped("esatto-probes", "traced_probes")?;
    let mut probes = vec![Kind { name: "esatto", program: ours }];
    match crate::traced::official("traced_probes") {
        Ok(program) => probes.push(Kind { name: PEER, program }),
        Err(error) => eprintln!("bench: without {PEER}: {error}"),
    }
    let tracefs = TracefsInstance::make().inspect_err(|error| eprintln!("bench: probes: {error}")).ok();
    let bench = Bench { service: Kind { name: "traced", program: service }, probes, tracefs };
    let mut rows = Vec::new();
    for (name, part, needs_ftrace) in PARTS {
        if !options.wants(name) {
            continue;
        }
        if *needs_ftrace && bench.tracefs.is_none() {
            eprintln!("bench: probes: SKIPPED part {name}: it needs ftrace");
            continue;
        }
        rows.extend(part(options, &bench)?);
    }
    Ok(rows)
}

impl Bench {
    /// A row with the values of both programs; `value` takes the index of the program.
    fn row(&self, case: impl Into<String>, unit: &'static str, value: impl Fn(usize) -> f64) -> Row {
        Row::new(GROUP, case, unit, value(0)).beside(PEER, self.probes.get(1).map(|_| value(1)))
    }

    /// Name of the tracefs instance.
    fn instance(&self) -> Result<&str, String> {
        self.tracefs.as_ref().map(TracefsInstance::name).ok_or_else(|| "no tracefs".to_owned())
    }
}
