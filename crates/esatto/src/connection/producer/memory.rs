//! The memory for the chunks of a producer (`docs/spec/shared-memory.md`): memory of this process
//! that is offered to the service, memory of the service, or private memory if the service cannot
//! share any (§17).

use std::sync::Arc;

use esatto_schema::get_async_command_response::SetupTracingReader;
use esatto_shm::abi::PageSize;
use esatto_shm::size::Geometry;
use esatto_shm::{Arbiter, Memory, Options, PrivateRegion};

use super::commit_schedule::CommitSchedule;
use crate::connection::transport::SharedMemory;
use crate::diagnostics;
use crate::os::{self, OwnedFd, Shared, Waker};

/// The size of the memory for chunks if the service cannot share memory
/// (`docs/spec/shared-memory.md` §17).
const EMULATED_MEMORY_BYTES: usize = 1 << 20;

/// Memory that no thread uses yet.
pub(super) struct ChunkMemory {
    region: Arc<dyn Memory>,
    page_size: PageSize,
    offer: Option<Offer>,
}

/// The path of the data.
#[derive(Debug)]
pub(super) struct Transport {
    pub(super) arbiter: Arc<Arbiter>,
    pub(super) schedule: Arc<CommitSchedule>,
    /// Memory of this process, to be offered to the service.
    pub(super) offer: Option<Offer>,
}

/// Memory of this process, to be offered to the service.
#[derive(Debug)]
pub(super) struct Offer {
    region: Arc<Shared>,
    page_size: PageSize,
}

impl ChunkMemory {
    /// Makes memory of this process, to offer it to the service.
    pub(super) fn provide(size_hint_bytes: u32, page_size_hint_bytes: u32) -> Result<Self, String> {
        let (size, page_size) = (size_hint_bytes as usize, page_size_hint_bytes as usize);
        let geometry = match Geometry::exact(size, page_size) {
            Ok(geometry) => geometry,
            Err(_) => Geometry::negotiate(size, page_size),
        };
        let region = os::create_shared(geometry.size)?;
        let offer = Offer { region: Arc::clone(&region), page_size: geometry.page_size };
        Ok(Self { region, page_size: geometry.page_size, offer: Some(offer) })
    }

    /// Opens the memory that the service has sent. Makes private memory if `is_emulated`: then the
    /// service cannot share any.
    pub(super) fn open(
        setup: SetupTracingReader<'_>,
        memory: Option<SharedMemory>,
        is_emulated: bool,
    ) -> Result<Self, String> {
        let kib = setup.shared_buffer_page_size_kb().unwrap_or(0);
        let page_size = usize::try_from(kib)
            .ok()
            .and_then(|kib| kib.checked_mul(1024))
            .and_then(|bytes| PageSize::new(bytes).ok())
            .ok_or_else(|| format!("the service wants shared memory pages of {kib} KiB"))?;
        let region: Arc<dyn Memory> = match memory.filter(|_| !is_emulated) {
            Some(SharedMemory::Region(region)) => region,
            Some(SharedMemory::Fd { fd, is_trusted }) => os::map_shared(fd, is_trusted).map_err(|why| {
                let why = format!("its memory cannot be used: {why}");
                diagnostics::say_once(format!("not recorded by the tracing service: {why}"));
                why
            })?,
            None if is_emulated => Arc::new(PrivateRegion::new(EMULATED_MEMORY_BYTES)),
            None => return Err("the service sent no shared memory".into()),
        };
        Ok(Self { region, page_size, offer: None })
    }

    /// Shares the memory between the threads that trace.
    pub(super) fn share(self, options: Options, waker: Waker) -> Result<Transport, String> {
        let Self { region, page_size, offer } = self;
        let schedule = Arc::new(CommitSchedule::new(waker));
        let arbiter =
            Arbiter::with_options(region, page_size, schedule.clone(), options).map_err(|error| error.to_string())?;
        Ok(Transport { arbiter, schedule, offer })
    }
}

impl Offer {
    pub(super) fn page_size_bytes(&self) -> u32 {
        self.page_size.bytes() as u32
    }

    pub(super) fn size_bytes(&self) -> u32 {
        self.region.size() as u32
    }

    /// Returns a descriptor for the service, or `None` if none can be made.
    pub(super) fn descriptor(&self) -> Option<OwnedFd> {
        os::descriptor(&self.region)
    }
}
