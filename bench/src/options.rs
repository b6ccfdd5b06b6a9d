//! The command line.

use std::path::PathBuf;

const USAGE: &str = "\
esatto-bench [GROUP...] [--json FILE] [--rounds N] [--traced PROGRAM] [--part NAME]...

  sdk         trace points beside perfetto-sdk, perfetto-recorder, fastrace, tracy-client and
              tracing-perfetto, spans of tracing beside tracing-perfetto-sdk, and above a mock writer; bytes, losses,
              machine code; its parts are points, tracing, system, losses and code
  protozero   encoding into bytes and chunks, decoding traces, machine code, beside prost, quick-protobuf,
              micropb, buffa and rust-protobuf, and above the speed of light
  service     the tracing service, beside Perfetto's traced; its parts are write, read, latency and idle
  c-abi       trace points of the C library beside those of Perfetto's, as perfetto-sdk-sys has it; sizes of the libraries
              (compiles that library four times, the first time: minutes)
  rpc         calls of the RPC library, beside a bare ping-pong, ttrpc, tarpc, capnp-rpc and tonic; cost of its hooks,
              and of building it; calls through the layers of tower, beside a bare service and the layer of
              tower-http; its parts are calls, hooks and tower, and build, which runs only if it is named
              (clean builds of all peers: minutes)
  fidl        encoding and decoding FIDL's wire format beside protozero, flatbuffers and bincode; its calls beside
              those of the RPC library; cost of hooks that are off; its parts are values and calls
  probes      the data sources of the operating system, beside Perfetto's traced_probes; its parts are switches, losses,
              scans, idle and latency (Linux, as root, with a tracefs)
  front       how long a user of the command line waits: from the start of a recording to its first event, and from
              Ctrl-C to the finished file, beside Perfetto's perfetto, traced and traced_probes
  read        from a trace to its tables, beside the trace processor as WebAssembly; from a trace to a report, and its page
              in a browser; its parts are import and report
  query       SQL over traces, beside DuckDB over the same Parquet and the trace processor as WebAssembly; exports to
              Parquet; a thousand traces on one processor, on two and on a cluster; its parts are aggregate, export,
              traces and growth (compiles query/: a quarter of an hour, the first time)
  build       clean build time, size and crates of a program with an SDK, beside perfetto-sdk
              (compiles the C++ SDK anew: minutes)

  Without a group: all.

  --json FILE       write the rows there, too
  --rounds N        rounds in which both contenders are measured alternately (7; rpc, read and query: 3)
  --traced PROGRAM  another tracing service, for sdk and probes
  --part NAME       of sdk, service, rpc, fidl, probes, read or query; may be given several times (all)";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Sdk,
    Protozero,
    Service,
    CAbi,
    Rpc,
    Fidl,
    Probes,
    Front,
    Read,
    Query,
    Build,
}

impl Group {
    const ALL: [Self; 11] = [
        Self::Sdk,
        Self::Protozero,
        Self::Service,
        Self::CAbi,
        Self::Rpc,
        Self::Fidl,
        Self::Probes,
        Self::Front,
        Self::Read,
        Self::Query,
        Self::Build,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sdk => "sdk",
            Self::Protozero => "protozero",
            Self::Service => "service",
            Self::CAbi => "c-abi",
            Self::Rpc => "rpc",
            Self::Fidl => "fidl",
            Self::Probes => "probes",
            Self::Front => "front",
            Self::Read => "read",
            Self::Query => "query",
            Self::Build => "build",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) groups: Vec<Group>,
    pub(crate) json: Option<PathBuf>,
    /// The number on the command line, or the default of most groups.
    pub(crate) rounds: usize,
    has_rounds: bool,
    pub(crate) traced: Option<PathBuf>,
    /// Parts of the groups `sdk`, `service`, `rpc`, `fidl` and `probes`; none means all.
    pub(crate) parts: Vec<String>,
}

impl Options {
    pub(crate) fn wants(&self, part: &str) -> bool {
        self.parts.is_empty() || self.names(part)
    }

    /// Returns true if the part was asked for by name.
    pub(crate) fn names(&self, part: &str) -> bool {
        self.parts.iter().any(|wanted| wanted == part)
    }

    /// Returns the rounds of a group with another default.
    pub(crate) fn rounds_or(&self, default: usize) -> usize {
        if self.has_rounds { self.rounds } else { default }
    }

    /// Returns `None` after printing the usage, if the arguments ask for it.
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut this =
            Self { groups: Vec::new(), json: None, rounds: 7, has_rounds: false, traced: None, parts: Vec::new() };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value\n{USAGE}"));
            match arg.as_str() {
                "--json" => this.json = Some(value()?.into()),
                "--part" => this.parts.push(value()?),
                "--traced" => this.traced = Some(value()?.into()),
                "--rounds" => {
                    let text = value()?;
                    this.has_rounds = true;
                    this.rounds = text
                        .parse()
                        .ok()
                        .filter(|&n| n > 0)
                        .ok_or_else(|| format!("--rounds takes a number from 1, not '{text}'"))?;
                }
                "-h" | "--help" => {
                    println!("{USAGE}");
                    return Ok(None);
                }
                name => {
                    let group = Group::ALL.into_iter().find(|group| group.name() == name);
                    this.groups.push(group.ok_or_else(|| format!("unknown group '{name}'\n{USAGE}"))?);
                }
            }
        }
        if this.groups.is_empty() {
            this.groups = Group::ALL.to_vec();
        }
        Ok(Some(this))
    }
}
