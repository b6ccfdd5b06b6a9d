//! [`FrozenFtrace`]: the data source `linux.frozen_ftrace` (`docs/spec/probes.md` §12).

use core::time::Duration;
use std::collections::BTreeMap;

use esatto::producer::TraceWriter;
use esatto_protozero::Owned as _;
use esatto_schema::ftrace_stats::Phase;
use esatto_schema::{DataSourceConfig, DataSourceDescriptor};

use super::event_set::EventSet;
use super::event_table::EventTable;
use super::ftrace_request::check_instance_name;
use super::ftrace_source::Places;
use super::ftrace_statistics::{FtraceStatistics, SourceStatistics, write_preserved};
use super::page_reader::{End, PAGES_PER_BATCH, PageReader};
use super::parse_status::ParseStatuses;
use super::source_encoder::{SourceEncoder, SourceOptions, Surroundings};
use super::tracefs::Tracefs;
use super::tracer::{Failures, buffer_kb, event_table, page_kb};
use crate::data_source::{DataSource, Instance, InstanceId, Monotonic, Observations, Observed, SetupError};

/// Batches of pages that are read in one turn.
const BATCHES_PER_TURN: usize = 8;

/// The data source `linux.frozen_ftrace` with all its instances. Each reads, once, what is in the
/// buffer of a tracefs instance, such as one that has survived a restart of the machine.
pub(crate) struct FrozenFtrace {
    places: Places,
    instances: BTreeMap<InstanceId, Frozen>,
}

struct Frozen {
    tracefs: Tracefs,
    table: EventTable,
    encoder: SourceEncoder,
    /// CPUs that are to be read, the next one last, and how many pages each may have.
    readers: Vec<(PageReader, usize)>,
    pages: Vec<u8>,
    read_errors: ParseStatuses,
    failures: Failures,
    /// Set by the start.
    writer: Option<TraceWriter>,
}

impl FrozenFtrace {
    pub(crate) const fn new(places: Places) -> Self {
        Self { places, instances: BTreeMap::new() }
    }

    fn read(&self, config: &DataSourceConfig) -> Result<Frozen, String> {
        let config = config.frozen_ftrace_config.as_ref();
        let name = config.and_then(|config| config.instance_name.as_ref());
        let name = name.map(|name| String::from_utf8_lossy(name.as_ref()).into_owned()).unwrap_or_default();
        check_instance_name(&name)?;
        if name.is_empty() {
            return Err("frozen_ftrace_config has no instance_name; name an instance of tracefs".to_owned());
        }
        let top = Tracefs::find(&self.places.mount_points)?;
        let tracefs = top.instance(&name);
        let readers = open_readers(&tracefs)?;
        let mut table = event_table(&tracefs, &top);
        let mut events = EventSet::default();
        for group in tracefs.folders("events") {
            for name in tracefs.folders(&format!("events/{group}")) {
                if EventTable::is_in_schema(&group, &name) {
                    let format = || tracefs.read(&format!("events/{group}/{name}/format")).ok();
                    table.look_up(&group, &name, format).into_iter().for_each(|id| events.insert(id));
                }
            }
        }
        let page_kb = page_kb(&table) as usize;
        let readers = readers.into_iter().rev().map(|(reader, kb)| (reader, kb as usize / page_kb + 1));
        let encoder = SourceEncoder::new(SourceOptions { events, ..SourceOptions::default() }, &table);
        Ok(Frozen {
            pages: vec![0; PAGES_PER_BATCH * table.page_layout().page_size()],
            readers: readers.collect(),
            tracefs,
            table,
            encoder,
            read_errors: ParseStatuses::default(),
            failures: Failures::default(),
            writer: None,
        })
    }
}

/// Opens the pipes of all CPUs. Returns each with the size of its buffer.
fn open_readers(tracefs: &Tracefs) -> Result<Vec<(PageReader, u32)>, String> {
    let mut readers = Vec::new();
    for cpu in tracefs.cpus() {
        let pipe = tracefs.open_pipe(&format!("per_cpu/cpu{cpu}/trace_pipe_raw")).map_err(|error| error.to_string())?;
        let kb = buffer_kb(tracefs, &format!("per_cpu/cpu{cpu}/buffer_size_kb"));
        let kb = kb.or_else(|| buffer_kb(tracefs, "buffer_size_kb")).unwrap_or(0);
        readers.push((PageReader::new(cpu, pipe), kb));
    }
    match readers.is_empty() {
        true => Err(format!("there is no tracefs instance {}", tracefs.path("").display())),
        false => Ok(readers),
    }
}

impl Frozen {
    /// Reads some pages. Returns false after the last one.
    fn read_batch(&mut self) -> bool {
        let Some(writer) = &mut self.writer else { return false };
        let Some((reader, left)) = self.readers.last_mut() else { return false };
        let layout = *self.table.page_layout();
        // Each page counts as the first: a buffer that nobody writes to has no other one that is
        // not full.
        let len = self.pages.len().min((*left).saturating_mul(layout.page_size()));
        let batch = reader.read(&layout, &mut self.pages[..len], true);
        *left = left.saturating_sub(batch.pages);
        let mut observed = Observed::default();
        let mut around =
            Surroundings { table: &self.table, symbols: None, clock: None, writer, observed: &mut observed };
        self.encoder.encode(reader.cpu(), &self.pages[..batch.pages * layout.page_size()], &mut around);
        if let Some(End::Failed(status)) = batch.end {
            self.read_errors.insert(status);
        }
        // The end of a batch may be a page that is not full: only an empty one is the last.
        if batch.pages == 0 && batch.end.is_some() || *left == 0 {
            self.readers.pop();
        }
        if self.readers.is_empty() {
            self.write_statistics();
        }
        !self.readers.is_empty()
    }

    fn write_statistics(&mut self) {
        let Some(writer) = &mut self.writer else { return };
        let mut errors = self.encoder.errors();
        errors.extend(self.read_errors);
        let source = SourceStatistics {
            failures: &self.failures,
            compact_sched_error: None,
            errors,
            preserves_buffer: true,
            symbols: None,
        };
        FtraceStatistics::of_cpus(&self.tracefs).write(Phase::END_OF_TRACE, &source, writer);
        writer.flush();
    }
}

impl DataSource for FrozenFtrace {
    fn descriptor(&self) -> DataSourceDescriptor {
        DataSourceDescriptor {
            name: Some("linux.frozen_ftrace".into()),
            will_notify_on_start: Some(true),
            will_notify_on_stop: Some(true),
            ..DataSourceDescriptor::default()
        }
    }

    fn set_up(&mut self, instance: Instance) -> Result<(), SetupError> {
        let config = DataSourceConfig::decode(&instance.config);
        let config = config.map_err(|why| SetupError(format!("the config cannot be decoded: {why}")))?;
        let frozen = self.read(&config).map_err(SetupError)?;
        self.instances.insert(instance.id, frozen);
        Ok(())
    }

    fn start(&mut self, id: InstanceId, mut writer: TraceWriter) {
        if let Some(frozen) = self.instances.get_mut(&id) {
            write_preserved(&mut writer);
            frozen.encoder.begin_read();
            frozen.writer = Some(writer);
        }
    }

    fn flush(&mut self, id: InstanceId, _: &mut Observations) {
        if let Some(frozen) = self.instances.get_mut(&id) {
            while frozen.read_batch() {}
            if let Some(writer) = &mut frozen.writer {
                writer.flush();
            }
        }
    }

    fn stop(&mut self, id: InstanceId) {
        let Some(Frozen { tracefs, readers, writer: Some(mut writer), .. }) = self.instances.remove(&id) else {
            return;
        };
        writer.flush();
        drop(readers);
        if let Err(error) = tracefs.write("trace", "") {
            log::warn!("{error}");
        }
    }

    fn deadline(&self) -> Option<Monotonic> {
        let mut started = self.instances.values().filter(|frozen| frozen.writer.is_some());
        started.any(|frozen| !frozen.readers.is_empty()).then_some(Duration::ZERO)
    }

    fn tick(&mut self, _: Monotonic, _: &mut Observations) {
        for frozen in self.instances.values_mut() {
            for _ in 0..BATCHES_PER_TURN {
                if !frozen.read_batch() {
                    break;
                }
            }
        }
    }
}
