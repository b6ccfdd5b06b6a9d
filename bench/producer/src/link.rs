//! One producer: a connection, its memory, and a writer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak, mpsc};
use std::time::{Duration, Instant};

use esatto_ipc::{Address, BlockingClient, RequestId};
use esatto_protozero::{HeapBuffer, Owned as _};
use esatto_schema::{GetAsyncCommandResponse, InitializeConnectionRequest, RegisterDataSourceRequest};
use esatto_shm::abi::{ChunkState, PageSize};
use esatto_shm::{Arbiter, CommitRequest, MappedRegion, Memory, Notify, Outgoing, Smb, TraceWriter};

use crate::options::{Commit, Options};

/// Until anything that never takes long is called hanging.
const DEADLINE: Duration = Duration::from_secs(60);

/// A producer.
pub(crate) struct Link {
    sink: Arc<Sink>,
    commands: RequestId,
    memory: Option<Shared>,
    writer: TraceWriter,
}

/// Shared memory from the service.
struct Shared {
    arbiter: Arc<Arbiter>,
    pages: Smb<Arc<dyn Memory>>,
}

/// Where commits go: straight into the socket.
struct Sink {
    client: Mutex<BlockingClient>,
    arbiter: OnceLock<Weak<Arbiter>>,
    /// Held while calls are made.
    sending: Mutex<()>,
    commit: Commit,
    /// There is something to send.
    woken: AtomicBool,
    /// The thread that sends, with [`Commit::Thread`], sleeps here.
    bell: (Mutex<()>, Condvar),
    /// The page of the chunk that was committed last.
    last_page: Mutex<u32>,
    /// Commits whose reply the caller waits for.
    awaited: Mutex<Vec<(RequestId, CommitRequest)>>,
}

impl Link {
    /// Introduces itself and registers its data source.
    pub(crate) fn connect(options: &Options) -> Result<Self, String> {
        let address = Address::producer_default().map_err(text)?;
        let mut client = BlockingClient::connect(&address, "ProducerPort", DEADLINE).map_err(text)?;
        let request = InitializeConnectionRequest {
            producer_name: Some("bench-producer".into()),
            shared_memory_size_hint_bytes: Some(options.smb_bytes),
            ..InitializeConnectionRequest::default()
        };
        call(&mut client, "InitializeConnection", &request.encode())?;
        let commands = client.send("GetAsyncCommand", &[], None).map_err(text)?;
        let mut request = RegisterDataSourceRequest::default();
        request.data_source_descriptor.get_or_insert_default().name = Some(options.source.as_str().into());
        call(&mut client, "RegisterDataSource", &request.encode())?;
        let sink = Sink {
            client: Mutex::new(client),
            arbiter: OnceLock::new(),
            sending: Mutex::new(()),
            commit: options.commit,
            woken: AtomicBool::new(false),
            bell: Default::default(),
            last_page: Mutex::new(0),
            awaited: Mutex::default(),
        };
        Ok(Self { sink: Arc::new(sink), commands, memory: None, writer: TraceWriter::null() })
    }

    /// Follows the commands up to the start of the data source.
    pub(crate) fn await_start(&mut self, options: &Options) -> Result<(), String> {
        loop {
            let mut client = lock(&self.sink.client);
            let reply = client.wait_reply(self.commands, Some(DEADLINE)).map_err(text)?;
            let descriptor = client.take_fd();
            drop(client);
            let command: GetAsyncCommandResponse = reply.decode().map_err(text)?;
            if let Some(setup) = &command.setup_tracing {
                let fd = descriptor.ok_or("no shared memory came")?;
                let region: Arc<dyn Memory> = Arc::new(MappedRegion::from_service(fd).map_err(text)?);
                let page_size = setup.shared_buffer_page_size_kb.unwrap_or(4) as usize * 1024;
                let page_size = PageSize::new(page_size).map_err(text)?;
                self.memory = Some(Shared::new(region, page_size, Arc::clone(&self.sink))?);
            }
            if let Some(start) = &command.start_data_source {
                let buffer = start.config.as_ref().and_then(|config| config.target_buffer);
                let buffer = buffer.and_then(|id| u16::try_from(id).ok()).ok_or("no buffer to write to")?;
                let memory = self.memory()?;
                let writer = memory.arbiter.create_writer(buffer, options.policy);
                self.sink.send_pending();
                self.writer = writer;
                return Ok(());
            }
        }
    }

    /// Bytes of the memory shared with the service.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory.as_ref().map_or(0, |memory| memory.arbiter.region().size())
    }

    /// Bytes of a page of it.
    pub(crate) fn page_bytes(&self) -> usize {
        self.memory.as_ref().map_or(0, |memory| memory.arbiter.page_size().bytes())
    }

    /// Writes a packet; whether it got through.
    pub(crate) fn write(&mut self, packet: &[u8]) -> Result<bool, String> {
        let drops = self.writer.drop_count();
        self.writer.new_packet().message().raw(packet);
        if self.sink.commit == Commit::Chunk && self.sink.woken.swap(false, Ordering::Relaxed) {
            self.sink.send_pending();
        }
        Ok(!self.writer.is_dropping() && self.writer.drop_count() == drops)
    }

    /// Writes a packet, gives its chunk away, and waits until that is free.
    pub(crate) fn release_one(&mut self, packet: &[u8]) -> Result<Duration, String> {
        self.writer.new_packet().message().raw(packet);
        self.writer.flush();
        let memory = self.memory()?;
        let begin = Instant::now();
        self.sink.send_pending();
        let page = *lock(&self.sink.last_page);
        while memory.pages.page_word(page).state(0).is_some_and(|state| state != ChunkState::Free) {
            if begin.elapsed() > DEADLINE {
                return Err("the chunk does not become free".to_owned());
            }
            std::hint::spin_loop();
        }
        Ok(begin.elapsed())
    }

    /// Waits until the service has everything.
    pub(crate) fn finish(&mut self) -> Result<(), String> {
        let (done, is_done) = mpsc::channel();
        self.writer.flush_with(move || {
            let _ = done.send(());
        });
        let begin = Instant::now();
        while is_done.try_recv().is_err() {
            self.sink.send_pending();
            self.sink.collect_replies()?;
            if begin.elapsed() > DEADLINE {
                return Err("the service does not answer a commit".to_owned());
            }
        }
        Ok(())
    }

    fn memory(&self) -> Result<&Shared, String> {
        self.memory.as_ref().ok_or_else(|| "started without shared memory".to_owned())
    }
}

impl Shared {
    fn new(region: Arc<dyn Memory>, page_size: PageSize, sink: Arc<Sink>) -> Result<Self, String> {
        let mut options = esatto_shm::Options::default();
        if sink.commit == Commit::Half {
            // Nothing is said before half of the memory is full.
            options.batch_delay = DEADLINE;
        }
        let pages = Smb::new(Arc::clone(&region), page_size).map_err(text)?;
        let arbiter = Arbiter::with_options(region, page_size, Arc::clone(&sink) as _, options).map_err(text)?;
        let _ = sink.arbiter.set(Arc::downgrade(&arbiter));
        if sink.commit == Commit::Thread {
            std::thread::spawn(move || sink.send_when_woken());
        }
        Ok(Self { arbiter, pages })
    }
}

impl Sink {
    /// The loop of the thread that sends; it ends with the process.
    fn send_when_woken(&self) {
        loop {
            let mut guard = lock(&self.bell.0);
            while !self.woken.swap(false, Ordering::Acquire) {
                guard = self.bell.1.wait(guard).unwrap_or_else(PoisonError::into_inner);
            }
            drop(guard);
            self.send_pending();
        }
    }

    /// Makes the calls that the arbiter wants, in their order.
    fn send_pending(&self) {
        let Some(arbiter) = self.arbiter.get().and_then(Weak::upgrade) else { return };
        let _turn = lock(&self.sending);
        while let Some(outgoing) = arbiter.poll_outgoing() {
            match outgoing {
                Outgoing::Commit(request) => self.commit(request),
                Outgoing::RegisterWriter { writer_id, target_buffer } => {
                    let request = esatto_schema::RegisterTraceWriterRequest {
                        trace_writer_id: Some(writer_id.into()),
                        target_buffer: Some(target_buffer.into()),
                        ..Default::default()
                    };
                    self.send("RegisterTraceWriter", &request.encode(), false);
                }
                Outgoing::UnregisterWriter { writer_id } => {
                    let request = esatto_schema::UnregisterTraceWriterRequest {
                        trace_writer_id: Some(writer_id.into()),
                        ..Default::default()
                    };
                    self.send("UnregisterTraceWriter", &request.encode(), false);
                }
            }
        }
    }

    fn commit(&self, request: CommitRequest) {
        let mut buffer = HeapBuffer::new();
        request.write_to(&mut buffer.message());
        if let Some(chunk) = request.moves.last() {
            *lock(&self.last_page) = chunk.page;
        }
        let sent = self.send("CommitData", &buffer.to_vec(), request.wants_reply());
        if let Some(id) = sent {
            lock(&self.awaited).push((id, request));
        }
    }

    fn send(&self, method: &'static str, args: &[u8], wants_reply: bool) -> Option<RequestId> {
        let mut client = lock(&self.client);
        let sent = match wants_reply {
            true => client.send(method, args, None).map(Some),
            false => client.send_one_way(method, args).map(|()| None),
        };
        match sent {
            Ok(request) => request,
            Err(error) => {
                eprintln!("bench-producer: {method}: {error}");
                std::process::exit(1);
            }
        }
    }

    fn collect_replies(&self) -> Result<(), String> {
        let Some((request, commit)) = lock(&self.awaited).pop() else { return Ok(()) };
        let reply = lock(&self.client).wait_reply(request, Some(DEADLINE)).map_err(text)?;
        if !reply.success {
            return Err("a commit was rejected".to_owned());
        }
        commit.callbacks.into_iter().for_each(|callback| callback());
        Ok(())
    }
}

impl Notify for Sink {
    fn wake(&self) {
        self.woken.store(true, Ordering::Release);
        if self.commit == Commit::Thread {
            let _guard = lock(&self.bell.0);
            self.bell.1.notify_one();
        }
    }

    fn send_on_connection_thread(&self) -> bool {
        let is_here = self.commit != Commit::Thread;
        if is_here {
            self.send_pending();
        }
        is_here
    }
}

fn call(client: &mut BlockingClient, method: &'static str, args: &[u8]) -> Result<(), String> {
    let reply = client.call(method, args, Some(DEADLINE)).map_err(text)?;
    if reply.success { Ok(()) } else { Err(format!("{method} was rejected")) }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
