//! Events of connections: `rpc connect`, and `rpc rejected`.

use core::sync::atomic::Ordering;
use std::sync::{LazyLock, Mutex, PoisonError};

use esatto::{Arg, Begun, Category, Event, Kind, Name, Site, record, record_only};
use esatto_ipc::hooks::{Call, Connection, Rejected};

use crate::method_sites::MethodSites;

/// Category of requests that belong to no method.
static RPC: LazyLock<&'static Category> = LazyLock::new(|| Category::dynamic_with_tags("rpc", &["rpc"]));

static REJECTED: LazyLock<Site> = LazyLock::new(|| {
    static ARGUMENTS: [Name; 2] = [Name::new("role"), Name::new("request_id")];
    Site::new(*RPC, Kind::Instant, Some("rpc rejected"), &ARGUMENTS)
});

/// Lets services list the category.
pub(crate) fn announce() {
    LazyLock::force(&RPC);
}

/// Records the peer of a connection in the sessions that see its first call now.
#[inline]
pub(crate) fn connect(call: &Call, sites: &'static MethodSites) {
    let known = Begun::from_bits(call.connection.word.load(Ordering::Relaxed));
    if known.missing(sites.connect.category()) != 0 {
        connect_now(call, sites);
    }
}

#[cold]
fn connect_now(call: &Call, sites: &'static MethodSites) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let connection = &*call.connection;
    let mut known = Begun::from_bits(connection.word.load(Ordering::Relaxed));
    let missing = known.missing(sites.connect.category());
    let mut peer = |event: &mut Event<'_>| {
        if let Some(pid) = connection.peer_pid {
            event.annotate("peer_pid", i64::from(pid));
        }
        if let Some(uid) = connection.peer_uid {
            event.annotate("peer_uid", i64::from(uid));
        }
    };
    let role = crate::role(call);
    known.add(|| record_only(missing, &sites.connect, &mut [Arg::Str(role), Arg::With(&mut peer)]));
    connection.word.store(known.to_bits(), Ordering::Relaxed);
}

/// Records a request for a service or a method that does not exist. Names that the client sent are
/// not recorded.
pub(crate) fn rejected(_: &Connection, rejected: &Rejected) {
    if !RPC.is_enabled() || esatto::raw::is_control_thread() {
        return;
    }
    let mut more = |event: &mut Event<'_>| {
        if let Some(service) = rejected.service {
            event.annotate("service", service.name);
        }
        if rejected.method_id != 0 {
            event.annotate("method_id", u64::from(rejected.method_id));
        }
    };
    record(&REJECTED, &mut [Arg::Str("server"), Arg::U64(rejected.request_id), Arg::With(&mut more)]);
}
