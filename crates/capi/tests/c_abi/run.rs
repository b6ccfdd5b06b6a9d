//! Running the programs of `tests/c`, and looking at what they leave behind.

use std::path::{Path, PathBuf};

use esatto_protozero::Fields;
use esatto_schema::TracePacketReader;
use esatto_tests::{Harness, Implementation, Peer, Skip, tp};

use crate::build::program;
use crate::flavour::Flavour;

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// With the service in the process.
    V58,
    V59,
    /// As `V58`, at a fixed address: the program has copies of the library's data.
    Fixed,
    /// With our service.
    Ours,
    /// With Perfetto's.
    Theirs,
}

impl Stage {
    pub(crate) fn flavour(self) -> Flavour {
        if self == Self::V59 { Flavour::V59 } else { Flavour::V58 }
    }

    fn service(self) -> Option<Implementation> {
        match self {
            Self::Ours => Some(Implementation::Ours),
            Self::Theirs => Some(Implementation::Theirs),
            _ => None,
        }
    }
}

/// What a program has left behind.
#[derive(Debug)]
pub(crate) struct Run {
    harness: Harness,
    stage: Stage,
}

impl Run {
    /// Runs a program to its end, which must be a good one. `meanwhile` is called once it runs.
    pub(crate) fn new(source: &str, stage: Stage, meanwhile: impl FnOnce(&Harness)) -> Result<Self, Skip> {
        Self::with(&[], source, stage, meanwhile)
    }

    /// The same with paths in its environment.
    pub(crate) fn with(
        environment: &[(&str, &Path)],
        source: &str,
        stage: Stage,
        meanwhile: impl FnOnce(&Harness),
    ) -> Result<Self, Skip> {
        let options: &[&str] = if stage == Stage::Fixed { &["-no-pie", "-fno-pie"] } else { &[] };
        let program = program(stage.flavour(), source, options);
        let harness = Harness::new();
        let mut command = harness.command(program);
        command.arg(harness.folder()).envs(environment.iter().copied());
        let service = match stage.service() {
            Some(implementation) => {
                if implementation == Implementation::Theirs {
                    Peer::Official.require()?;
                }
                command.env("BACKEND", "system");
                Some(harness.service(implementation))
            }
            None => None,
        };
        let mut running = harness.start(source, &mut command);
        meanwhile(&harness);
        running.wait_ok();
        drop(service);
        Ok(Self { harness, stage })
    }

    /// A file that the program has left.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.harness.path(name)
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Runs statements on a trace, of which the trace processor must have nothing to complain but what is tolerated.
    pub(crate) fn query_tolerating<const N: usize>(
        &self,
        trace: &str,
        tolerated: &[&str],
        statements: [&str; N],
    ) -> Result<[Vec<tp::Row>; N], Skip> {
        Peer::TraceProcessor.require()?;
        let sql = [&[tp::COMPLAINTS], &statements[..]].concat().join(";\n");
        let mut results = tp::query(&self.file(trace), &sql);
        assert_eq!(results.len(), N + 1, "each statement returns rows: {statements:?}");
        let complaints = results.remove(0);
        let complaints: Vec<_> = complaints.iter().filter(|row| !tolerated.contains(&row.text("name"))).collect();
        assert!(complaints.is_empty(), "{trace}: {complaints:#?}");
        Ok(results.try_into().expect("as many as there are statements"))
    }

    /// Runs statements on a trace, of which the trace processor must have nothing to complain.
    pub(crate) fn query<const N: usize>(&self, trace: &str, statements: [&str; N]) -> Result<[Vec<tp::Row>; N], Skip> {
        self.query_tolerating(trace, &[], statements)
    }

    /// The trace processor, which takes a second to start, must have nothing to complain of but what is tolerated. One stage of each
    /// service is asked; the others' packets are the same.
    pub(crate) fn assert_clean(&self, trace: &str, tolerated: &[&str]) -> Result<(), Skip> {
        if matches!(self.stage, Stage::V58 | Stage::Theirs) {
            let [] = self.query_tolerating(trace, tolerated, [])?;
        }
        Ok(())
    }

    /// The packets of a trace.
    pub(crate) fn packets(&self, trace: &str) -> Vec<Vec<u8>> {
        let packets = esatto_trace::packets(&self.bytes(trace)).collect::<Result<Vec<_>, _>>().expect("whole packets");
        packets.into_iter().map(|packet| packet.bytes).collect()
    }

    /// What test events (`TracePacket.for_testing`) say.
    pub(crate) fn texts(&self, trace: &str) -> Vec<String> {
        let text = |packet: &Vec<u8>| {
            let text = TracePacketReader::new(packet).for_testing()?.str()?.to_vec();
            Some(String::from_utf8(text).expect("is text"))
        };
        self.packets(trace).iter().filter_map(text).collect()
    }

    /// The content of a field in the packets of a trace.
    pub(crate) fn fields(&self, trace: &str, field: u32) -> Vec<Vec<u8>> {
        let packets = self.packets(trace);
        packets.iter().filter_map(|packet| Some(Fields::new(packet).first(field)?.as_bytes().to_owned())).collect()
    }
}

/// The texts in a column.
pub(crate) fn column(rows: &[tp::Row], name: &str) -> Vec<String> {
    rows.iter().map(|row| row.text(name).to_owned()).collect()
}
