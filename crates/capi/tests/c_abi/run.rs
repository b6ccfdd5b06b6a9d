//! Runs the programs of `tests/c`, and reads the files that they leave.

use std::path::{Path, PathBuf};

use esatto_protozero::Fields;
use esatto_schema::TracePacketReader;
use esatto_tests::{Harness, Implementation, Peer, Skip, tp};

use crate::abi_version::AbiVersion;
use crate::build::program;

/// The library and the service that a program runs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The service in the process.
    V58,
    V59,
    /// As `V58`, for a program at a fixed address, which has copies of the library's data.
    Fixed,
    /// Our service.
    Ours,
    /// Perfetto's service.
    Theirs,
}

impl Stage {
    pub(crate) fn version(self) -> AbiVersion {
        if self == Self::V59 { AbiVersion::V59 } else { AbiVersion::V58 }
    }

    fn service(self) -> Option<Implementation> {
        match self {
            Self::Ours => Some(Implementation::Ours),
            Self::Theirs => Some(Implementation::Theirs),
            _ => None,
        }
    }
}

/// The files that a program has left.
#[derive(Debug)]
pub(crate) struct Run {
    harness: Harness,
    stage: Stage,
}

impl Run {
    /// Runs a program, which must succeed. Calls `meanwhile` once it runs.
    pub(crate) fn new(source: &str, stage: Stage, meanwhile: impl FnOnce(&Harness)) -> Result<Self, Skip> {
        Self::with(&[], source, stage, meanwhile)
    }

    /// As [`new`](Self::new), with paths in its environment.
    pub(crate) fn with(
        environment: &[(&str, &Path)],
        source: &str,
        stage: Stage,
        meanwhile: impl FnOnce(&Harness),
    ) -> Result<Self, Skip> {
        let options: &[&str] = if stage == Stage::Fixed { &["-no-pie", "-fno-pie"] } else { &[] };
        let program = program(stage.version(), source, options);
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

    /// Returns the path of a file that the program has left.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.harness.path(name)
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Runs statements on a trace. The trace processor must report no other problems than the
    /// tolerated ones.
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

    /// Runs statements on a trace. The trace processor must report no problem.
    pub(crate) fn query<const N: usize>(&self, trace: &str, statements: [&str; N]) -> Result<[Vec<tp::Row>; N], Skip> {
        self.query_tolerating(trace, &[], statements)
    }

    /// Asserts that the trace processor reports no other problems than the tolerated ones. Because
    /// it takes a second to start, it checks one stage of each service only. The packets of the
    /// other stages are the same.
    pub(crate) fn assert_clean(&self, trace: &str, tolerated: &[&str]) -> Result<(), Skip> {
        if matches!(self.stage, Stage::V58 | Stage::Theirs) {
            let [] = self.query_tolerating(trace, tolerated, [])?;
        }
        Ok(())
    }

    /// Returns the packets of a trace.
    pub(crate) fn packets(&self, trace: &str) -> Vec<Vec<u8>> {
        let packets = esatto_trace::packets(&self.bytes(trace)).collect::<Result<Vec<_>, _>>().expect("whole packets");
        packets.into_iter().map(|packet| packet.bytes).collect()
    }

    /// Returns the texts of test events (`TracePacket.for_testing`).
    pub(crate) fn texts(&self, trace: &str) -> Vec<String> {
        let text = |packet: &Vec<u8>| {
            let text = TracePacketReader::new(packet).for_testing()?.str()?.to_vec();
            Some(String::from_utf8(text).expect("is text"))
        };
        self.packets(trace).iter().filter_map(text).collect()
    }

    /// Returns the content of a field in the packets of a trace.
    pub(crate) fn fields(&self, trace: &str, field: u32) -> Vec<Vec<u8>> {
        let packets = self.packets(trace);
        packets.iter().filter_map(|packet| Some(Fields::new(packet).first(field)?.as_bytes().to_owned())).collect()
    }
}

/// Returns the texts in a column.
pub(crate) fn column(rows: &[tp::Row], name: &str) -> Vec<String> {
    rows.iter().map(|row| row.text(name).to_owned()).collect()
}
