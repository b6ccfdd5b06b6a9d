//! The sessions of a service, as far as this user may see them.

use core::time::Duration;
use std::collections::HashMap;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use esatto_ipc::blocking_client::Reply;
use esatto_ipc::{BlockingClient, Error as IpcError};
use esatto_ports::consumer_port::method::QueryServiceState;
use esatto_protozero::{Fields, Owned as _, ProtoString};
use esatto_schema::tracing_service_state::TracingSession;
use esatto_schema::{
    CONSUMER_PID_FIELD, DETACH_KEY_FIELD, QueryServiceStateRequest, QueryServiceStateResponseReader,
    SESSION_STATS_FIELD, TraceConfigReader, TracingServiceState, session_stats,
};
use esatto_trace::{BufferStats, TraceStats};

use crate::failure::Failure;
use crate::service_connection::lost;

/// Longest time for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest answer.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// `SESSION_STATS_WANTED_FIELD` with the number 1, encoded.
const STATS_WANTED: [u8; 4] = [0x88, 0xfa, 1, 1];

/// State of a session that records.
const STARTED: &str = "STARTED";

/// A session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListedSession {
    pub(crate) id: u64,
    pub(crate) uid: i32,
    /// `unique_session_name`, or empty.
    pub(crate) name: String,
    /// As the service calls it, such as `STARTED`.
    pub(crate) state: String,
    pub(crate) buffers_kb: Vec<u32>,
    /// Time after which it ends, if it does.
    pub(crate) duration: Option<Duration>,
    /// Data sources that take part.
    pub(crate) data_sources: u32,
    /// Time since its start.
    pub(crate) age: Option<Duration>,
    /// Process that controls it. Only Esatto's service tells.
    pub(crate) pid: Option<i32>,
    /// Key with which a detached session can be attached. Only Esatto's service tells.
    pub(crate) detach_key: Option<Vec<u8>>,
}

/// The sessions of a service.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionList {
    pub(crate) sessions: Vec<ListedSession>,
    /// Sessions of other users, which are not listed.
    pub(crate) hidden: usize,
    /// The service's version.
    pub(crate) version: String,
}

impl SessionList {
    /// Asks the service.
    pub(crate) fn query(client: &mut BlockingClient) -> Result<Self, Failure> {
        let request = QueryServiceStateRequest { sessions_only: Some(true), ..QueryServiceStateRequest::default() };
        let answer = answer(client, &request)?;
        let state = TracingServiceState::decode(&answer)
            .map_err(|_| Failure::new("cannot list the sessions of the service", "its answer is malformed"))?;
        let sessions: Vec<_> = state.tracing_sessions.iter().map(listed).collect();
        let all = usize::try_from(state.num_sessions.unwrap_or(0)).unwrap_or(0);
        let version = text(state.tracing_service_version.as_ref());
        Ok(Self { hidden: all.saturating_sub(sessions.len()), sessions, version })
    }

    /// Returns the session with this id, name or key.
    pub(crate) fn find(&self, wanted: &str) -> Result<&ListedSession, Failure> {
        let has_key = |session: &&ListedSession| session.detach_key.as_deref() == Some(wanted.as_bytes());
        let found = self
            .sessions
            .iter()
            .find(|session| session.name == wanted)
            .or_else(|| self.sessions.iter().find(has_key))
            .or_else(|| self.sessions.iter().find(|session| wanted.parse() == Ok(session.id)));
        found.ok_or_else(|| {
            let failure =
                Failure::new(format!("cannot find the session {wanted:?}"), "the service has none of this name or id");
            match self.hidden {
                0 => failure.hint("`esatto sessions` lists them"),
                _ => failure.hint("`esatto sessions` lists yours; it may be one of another user"),
            }
        })
    }
}

/// Statistics of a running session.
#[derive(Clone, Debug)]
pub(crate) struct SessionStats {
    pub(crate) stats: TraceStats,
    /// An encoded `TraceConfig` with the parts of the session's config that explain the statistics.
    /// Empty if the service does not tell it.
    pub(crate) config: Vec<u8>,
}

impl SessionStats {
    /// Returns whether the buffers are read while the session records, so that the trace should
    /// have everything that was written.
    pub(crate) fn is_read_while_recording(&self, state: &str) -> bool {
        let has_read = |buffer: &BufferStats| buffer.get("bytes_read").is_some_and(|bytes| *bytes > 0);
        TraceConfigReader::new(&self.config).write_into_file() == Some(true)
            || state == STARTED && self.stats.buffers.iter().any(has_read)
    }
}

/// Asks for the statistics of all sessions, by id. Empty if the service is not Esatto's.
pub(crate) fn statistics(client: &mut BlockingClient) -> Result<HashMap<u64, SessionStats>, Failure> {
    let request = QueryServiceStateRequest { sessions_only: Some(true), unknown_fields: STATS_WANTED.to_vec() };
    let answer = answer(client, &request)?;
    let told = Fields::new(&answer).filter(|field| field.id == SESSION_STATS_FIELD);
    Ok(told.map(|field| session_statistics(field.as_bytes())).collect())
}

fn session_statistics(told: &[u8]) -> (u64, SessionStats) {
    let mut id = 0;
    let (mut stats, mut config): (&[u8], &[u8]) = (&[], &[]);
    for field in Fields::new(told) {
        match field.id {
            session_stats::SESSION_ID => id = field.as_u64(),
            session_stats::STATS => stats = field.as_bytes(),
            session_stats::CONFIG => config = field.as_bytes(),
            _ => {}
        }
    }
    (id, SessionStats { stats: TraceStats::decode(stats), config: config.to_vec() })
}

fn answer(client: &mut BlockingClient, request: &QueryServiceStateRequest) -> Result<Vec<u8>, Failure> {
    let failed = |why: &str| Failure::new("cannot list the sessions of the service", why);
    let sent = client.send_message::<QueryServiceState>(request, None).map_err(|error| match error {
        IpcError::NoSuchMethod(_) => failed("it is too old for that"),
        error => lost(error),
    })?;
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    let mut answer = Vec::new();
    loop {
        let reply: Reply = match client.wait_reply(sent, Some(deadline.saturating_duration_since(Instant::now()))) {
            Ok(reply) => reply,
            Err(IpcError::Timeout) => return Err(failed("it did not answer in time")),
            Err(error) => return Err(lost(error)),
        };
        if !reply.success {
            return Err(failed("it refused the query"));
        }
        if let Some(part) = QueryServiceStateResponseReader::new(&reply.body).service_state() {
            answer.extend_from_slice(part.as_bytes());
        }
        if answer.len() > MAX_ANSWER_BYTES {
            return Err(failed("its answer has more than 64 MiB"));
        }
        if !reply.has_more {
            return Ok(answer);
        }
    }
}

fn listed(session: &TracingSession) -> ListedSession {
    let own = |id| Fields::new(&session.unknown_fields).find(|field| field.id == id);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let started = session.start_realtime_ns.and_then(|ns| u64::try_from(ns).ok()).filter(|ns| *ns > 0);
    ListedSession {
        id: session.id.unwrap_or(0),
        uid: session.consumer_uid.unwrap_or(-1),
        name: text(session.unique_session_name.as_ref()),
        state: text(session.state.as_ref()),
        buffers_kb: session.buffer_size_kb.clone(),
        duration: session.duration_ms.filter(|ms| *ms > 0).map(|ms| Duration::from_millis(ms.into())),
        data_sources: session.num_data_sources.unwrap_or(0),
        age: started.map(|ns| now.saturating_sub(Duration::from_nanos(ns))),
        pid: own(CONSUMER_PID_FIELD).and_then(|field| i32::try_from(field.as_u64()).ok()),
        detach_key: own(DETACH_KEY_FIELD).map(|field| field.as_bytes().to_vec()),
    }
}

fn text(text: Option<&ProtoString>) -> String {
    text.map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use esatto_schema::TraceConfig;

    #[test]
    fn a_session_is_found_by_name_before_its_id() {
        let session = |id, name: &str| ListedSession { id, name: name.to_owned(), ..ListedSession::default() };
        let detached = ListedSession { id: 9, detach_key: Some(b"k".to_vec()), ..ListedSession::default() };
        let list = SessionList { sessions: vec![session(1, ""), session(2, "1"), detached], ..SessionList::default() };
        assert_eq!(list.find("1").unwrap().id, 2);
        assert_eq!(list.find("2").unwrap().id, 2);
        assert_eq!(list.find("k").unwrap().id, 9);
        assert!(list.find("x").unwrap_err().to_string().contains("cannot find the session \"x\""));
    }

    #[test]
    fn the_wish_for_statistics_is_the_field_of_the_schema() {
        let wish: Vec<_> = Fields::new(&STATS_WANTED).map(|field| (field.id, field.as_u64())).collect();
        assert_eq!(wish, [(esatto_schema::SESSION_STATS_WANTED_FIELD, 1)]);
    }

    #[test]
    fn a_ring_that_is_read_after_its_end_is_not_read_while_it_records() {
        let with = |read: u64, config: &[u8]| {
            let mut stats = TraceStats::decode(&[]);
            stats.buffers = vec![[("bytes_read".to_owned(), read)].into()];
            SessionStats { stats, config: config.to_vec() }
        };
        assert!(with(1, &[]).is_read_while_recording("STARTED"));
        assert!(!with(1, &[]).is_read_while_recording("DISABLED"));
        assert!(!with(0, &[]).is_read_while_recording("STARTED"));
        let file = TraceConfig { write_into_file: Some(true), ..TraceConfig::default() };
        assert!(with(0, &file.encode()).is_read_while_recording("CONFIGURED"));
    }

    #[test]
    fn own_fields_of_the_service_are_read() {
        let told = TracingSession {
            id: Some(3),
            // 4001: 77, 4002: "k".
            unknown_fields: vec![0x88, 0xfa, 1, 77, 0x92, 0xfa, 1, 1, b'k'],
            ..TracingSession::default()
        };
        let session = listed(&told);
        assert_eq!((session.pid, session.detach_key.as_deref()), (Some(77), Some(&b"k"[..])));
    }
}
