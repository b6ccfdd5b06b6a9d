//! Call sites of `tracing` and the facts about them: recorded at the first use, and kept for ever,
//! as `tracing` keeps its call sites.

use core::hash::{Hash, Hasher};
use core::sync::atomic::{AtomicU32, Ordering};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use esatto::__private::Place;
use esatto::{Category, Kind, Lanes, Location, LogPriority, Name, Site};
use tracing_core::callsite::Identifier;
use tracing_core::{Level, Metadata};

use crate::event_name::{self, EventName};
use crate::field_values::Values;
use crate::options::{EventNames, Options, Slices};

/// A call site of spans or of events.
#[derive(Debug)]
pub(crate) struct Callsite {
    pub(crate) metadata: &'static Metadata<'static>,
    pub(crate) category: &'static Category,
    /// The names of the fields.
    pub(crate) names: &'static [Name],
    /// Begins slices with the fields as arguments.
    pub(crate) begin: Site,
    /// Ends slices.
    pub(crate) end: Site,
    /// Marks a moment, with the name of the call site and without arguments.
    pub(crate) mark: Site,
    /// Site of an event. It has a name if all events of the call site have the same one.
    pub(crate) event: Site,
    place: &'static Place,
    /// Index of the field `message`.
    pub(crate) message: Option<usize>,
    /// The message is the name of the event, instead of an argument.
    is_named_by_message: bool,
    /// Set if this is a call site of all messages of the `log` facade.
    log: Option<LogFields>,
    pub(crate) slices: Slices,
    pub(crate) lanes: Lanes,
    /// Experience with the spans so far: [`ASYNC`], or how many were entered just once.
    kind: AtomicU32,
}

/// Indices of the fields in which `tracing-log` names the origin of a message of the `log` facade.
/// Its events have five call sites in all, and none has a file.
#[derive(Clone, Copy, Debug)]
struct LogFields {
    target: usize,
    module: usize,
    file: usize,
    line: usize,
}

impl LogFields {
    fn of(metadata: &'static Metadata<'static>) -> Option<Self> {
        if metadata.target() != "log" || metadata.file().is_some() {
            return None;
        }
        let index = |name| metadata.fields().field(name).map(|field| field.index());
        Some(Self {
            target: index("log.target")?,
            module: index("log.module_path")?,
            file: index("log.file")?,
            line: index("log.line")?,
        })
    }

    fn name<'v>(&self, values: &'v Values) -> EventName<'v> {
        let module = values.text_of(self.module).or_else(|| values.text_of(self.target));
        let module = module.filter(|module| !module.is_empty());
        EventName::of_place(module.unwrap_or("log"), values.number_of(self.line))
    }

    fn location<'v>(&self, values: &'v Values) -> Option<Location<'v>> {
        let line = values.number_of(self.line).and_then(|line| u32::try_from(line).ok());
        let location = Location::new(values.text_of(self.file)?, line.unwrap_or(0));
        Some(location.in_function(values.text_of(self.module).unwrap_or_default()))
    }
}

/// Kind of the spans of a call site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanKind {
    /// Not enough spans were seen.
    Unknown,
    /// So many spans were entered just once that they belong to one thread each.
    Sync,
    /// A span was entered again, or in another thread than the one that created it, as futures are.
    Async,
}

/// Number of spans entered just once after which the call site counts as synchronous. A future that
/// is dropped before its first poll looks the same.
const SYNC: u32 = 1000;
/// Value that stands for asynchronous: a span was entered again.
const ASYNC: u32 = u32::MAX;

impl Callsite {
    fn new(metadata: &'static Metadata<'static>, options: &Options) -> Self {
        let category = category(options.category_of(metadata), options.is_debug(metadata));
        let names: Vec<Name> = metadata.fields().iter().map(|field| Name::new(field.name())).collect();
        let names: &'static [Name] = names.leak();
        let name = metadata.name();
        let log = LogFields::of(metadata);
        let is_named_by_message = options.event_names == EventNames::Message;
        let has_one_name = metadata.is_event() && log.is_none() && !is_named_by_message;
        let event_name = has_one_name.then(|| event_name::of(metadata));
        let file = metadata.file().unwrap_or_default();
        let module = metadata.module_path().unwrap_or_default();
        let place: &'static Place = Box::leak(Box::new(Place::new(file, module, metadata.line().unwrap_or(0))));
        let located = |site: Site| if file.is_empty() { site } else { site.located(place) };
        Self {
            metadata,
            category,
            names,
            begin: located(Site::new(category, Kind::SliceBegin, Some(name), names)),
            end: Site::new(category, Kind::SliceEnd, None, &[]),
            mark: Site::new(category, Kind::Instant, Some(name), &[]),
            event: located(Site::new(category, Kind::Instant, event_name, &[])),
            place,
            message: metadata.fields().field("message").map(|field| field.index()),
            is_named_by_message,
            log,
            slices: options.slices_of(metadata),
            lanes: Lanes::new(name),
            kind: AtomicU32::new(0),
        }
    }

    #[inline]
    pub(crate) fn kind(&self) -> SpanKind {
        match self.kind.load(Ordering::Relaxed) {
            ASYNC => SpanKind::Async,
            SYNC.. => SpanKind::Sync,
            _ => SpanKind::Unknown,
        }
    }

    /// Learns from a span that was entered just once.
    #[inline]
    pub(crate) fn learn_sync(&self) {
        if self.kind() == SpanKind::Unknown {
            let more = |kind: u32| (kind < SYNC).then_some(kind + 1);
            let _ = self.kind.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        }
    }

    /// Learns from a span of a future, for good.
    pub(crate) fn learn_async(&self) {
        self.kind.store(ASYNC, Ordering::Relaxed);
    }

    /// Returns the origin of an event, if it is known.
    pub(crate) fn location<'v>(&self, values: &'v Values) -> Option<Location<'v>> {
        match &self.log {
            Some(log) => log.location(values),
            None => self.metadata.file().map(|_| self.place.location()),
        }
    }

    /// Returns the name of an event whose site has none. `message` is its message.
    pub(crate) fn name_of<'v>(&self, message: Option<&'v str>, values: &'v Values) -> EventName<'v> {
        match &self.log {
            _ if self.is_named_by_message => EventName::Text(message.unwrap_or_else(|| self.metadata.name())),
            Some(log) => log.name(values),
            None => EventName::Text(self.metadata.name()),
        }
    }

    /// Returns whether a field of an event is one of its arguments, and not recorded in another
    /// way.
    pub(crate) fn is_argument(&self, field: usize) -> bool {
        !(self.is_named_by_message && Some(field) == self.message)
            && self.log.is_none_or(|LogFields { module, file, line, .. }| ![module, file, line].contains(&field))
    }

    pub(crate) fn priority(&self) -> LogPriority {
        match *self.metadata.level() {
            Level::ERROR => LogPriority::Error,
            Level::WARN => LogPriority::Warn,
            Level::INFO => LogPriority::Info,
            Level::DEBUG => LogPriority::Debug,
            Level::TRACE => LogPriority::Verbose,
        }
    }
}

/// Returns the category of a name, with or without the tag `debug`: the same one for each call.
/// There are at most twice as many as a program has targets.
fn category(name: Cow<'static, str>, is_debug: bool) -> &'static Category {
    type Categories = HashMap<&'static str, &'static Category>;
    static CATEGORIES: LazyLock<Mutex<[Categories; 2]>> = LazyLock::new(Mutex::default);
    let mut categories = CATEGORIES.lock().unwrap_or_else(PoisonError::into_inner);
    let categories = &mut categories[usize::from(is_debug)];
    if let Some(category) = categories.get(&*name) {
        return category;
    }
    let name: &'static str = match name {
        Cow::Borrowed(name) => name,
        Cow::Owned(name) => name.leak(),
    };
    let tags: &[&str] = if is_debug { &["debug"] } else { &[] };
    let category: &'static Category = Box::leak(Box::new(Category::new(name).with_tags(tags)));
    categories.insert(name, category);
    category
}

/// Number of lists in the table.
const LISTS: usize = 1024;

/// All call sites that were seen: a hash table by the address of the call site, read without a
/// lock.
pub(crate) struct Callsites {
    lists: Box<[Link]>,
}

type Link = OnceLock<&'static Node>;

struct Node {
    key: Identifier,
    callsite: Callsite,
    next: Link,
}

impl Callsites {
    pub(crate) fn new() -> Self {
        Self { lists: (0..LISTS).map(|_| Link::new()).collect() }
    }

    /// Returns the facts about a call site, if it was registered.
    #[inline]
    pub(crate) fn get(&self, metadata: &Metadata<'_>) -> Option<&'static Callsite> {
        let key = metadata.callsite();
        let mut link = self.list(&key);
        while let Some(node) = link.get() {
            if node.key == key {
                return Some(&node.callsite);
            }
            link = &node.next;
        }
        None
    }

    /// Returns the facts about a call site. Allocates for a new one.
    pub(crate) fn register(&self, metadata: &'static Metadata<'static>, options: &Options) -> &'static Callsite {
        if let Some(known) = self.get(metadata) {
            return known;
        }
        let key = metadata.callsite();
        let node = Node { key: key.clone(), callsite: Callsite::new(metadata, options), next: Link::new() };
        let new: &'static Node = Box::leak(Box::new(node));
        let mut link = self.list(&key);
        loop {
            // Another thread may have inserted the same call site, or another one.
            let node = *link.get_or_init(|| new);
            if node.key == key {
                return &node.callsite;
            }
            link = &node.next;
        }
    }

    fn list(&self, key: &Identifier) -> &Link {
        let mut hasher = AddressHasher::default();
        key.hash(&mut hasher);
        &self.lists[(hasher.finish() >> 32) as usize % LISTS]
    }
}

impl core::fmt::Debug for Callsites {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Callsites")
    }
}

/// Hashes by multiplication, because no stranger chooses the addresses.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, v: u64) {
        self.0 = (self.0 ^ v).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    #[inline]
    fn write_usize(&mut self, v: usize) {
        self.write_u64(v as u64);
    }
}
