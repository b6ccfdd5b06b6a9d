//! [`MethodSites`]: the trace points of a method, and the way to them from the method's description.

use std::sync::{Mutex, OnceLock, PoisonError};

use esatto::{Category, Kind, Name, Site};
use esatto_ipc::hooks::Call;
use esatto_ipc::service::TraceSite;

/// Trace points of one method.
#[derive(Debug)]
pub(crate) struct MethodSites {
    /// The slice of the call on a thread, on both sides.
    pub(crate) begin: Site,
    /// The slice on the track of a call that its caller does not wait for.
    pub(crate) begin_pending: Site,
    /// The slice around the handling of a reply.
    pub(crate) begin_reply: Site,
    /// The end of any of these slices.
    pub(crate) end: Site,
    /// The end of the slice on the track of a call.
    pub(crate) end_with_status: Site,
    /// The end of a call on the thread of its caller.
    pub(crate) reply_taken: Site,
    /// A reply that the server sends later, or in a stream.
    pub(crate) reply_sent: Site,
    /// The first traced call of a connection.
    pub(crate) connect: Site,
}

#[derive(Debug)]
struct Entry {
    category: &'static Category,
    sites: OnceLock<&'static MethodSites>,
}

/// Methods of one page of the table.
const PAGE: usize = 256;
/// Pages of the table. Methods beyond it are not traced.
const PAGES: usize = 64;

/// All traced methods of the process. The word of a [`TraceSite`] is the place of its entry, from
/// 1.
static TABLE: [OnceLock<Box<[OnceLock<Entry>]>>; PAGES] = [const { OnceLock::new() }; PAGES];

/// Number of entries.
static COUNT: Mutex<usize> = Mutex::new(0);

/// Returns the category of a method; `None` if there are too many methods.
#[inline]
pub(crate) fn category_of(site: &'static TraceSite) -> Option<&'static Category> {
    entry_of(site).map(|entry| entry.category)
}

/// Returns the trace points of the method of a call.
pub(crate) fn sites_of(call: &Call) -> Option<&'static MethodSites> {
    let entry = entry_of(call.site)?;
    Some(entry.sites.get_or_init(|| Box::leak(Box::new(MethodSites::new(entry.category, call.method.full_name)))))
}

#[inline]
fn entry_of(site: &'static TraceSite) -> Option<&'static Entry> {
    match site.word() {
        0 => add(site),
        word => get(word),
    }
}

#[inline]
fn get(word: usize) -> Option<&'static Entry> {
    let index = word - 1;
    TABLE.get(index / PAGE)?.get()?.get(index % PAGE)?.get()
}

#[cold]
fn add(site: &'static TraceSite) -> Option<&'static Entry> {
    let mut count = COUNT.lock().unwrap_or_else(PoisonError::into_inner);
    if site.word() == 0 {
        let index = *count;
        let page = TABLE.get(index / PAGE)?.get_or_init(|| (0..PAGE).map(|_| OnceLock::new()).collect());
        let category = Category::dynamic_with_tags(site.category(), &["rpc"]);
        let _ = page[index % PAGE].set(Entry { category, sites: OnceLock::new() });
        *count += 1;
        site.set_word(index + 1);
        site.set_switch(category.word());
    }
    get(site.word())
}

impl MethodSites {
    fn new(category: &'static Category, full_name: &'static str) -> Self {
        static CALL: [Name; 3] = [Name::new("role"), Name::new("request_id"), Name::new("bytes")];
        static REPLY: [Name; 4] = [Name::new("role"), Name::new("request_id"), Name::new("bytes"), Name::new("status")];
        static CONNECT: [Name; 1] = [Name::new("role")];
        static STATUS: [Name; 1] = [Name::new("status")];
        let reply: &'static str = Box::leak(format!("{full_name} reply").into_boxed_str());
        let site = |kind, name, arguments| Site::new(category, kind, name, arguments);
        Self {
            begin: site(Kind::SliceBegin, Some(full_name), &CALL),
            begin_pending: site(Kind::SliceBegin, Some(full_name), &[]),
            begin_reply: site(Kind::SliceBegin, Some(full_name), &CALL),
            end: site(Kind::SliceEnd, None, &[]),
            end_with_status: site(Kind::SliceEnd, None, &STATUS),
            reply_taken: site(Kind::Instant, Some(reply), &REPLY),
            reply_sent: site(Kind::Instant, Some(reply), &CALL),
            connect: site(Kind::Instant, Some("rpc connect"), &CONNECT),
        }
    }
}
