//! States of other sessions of the service, each on a track of its session.

use esatto_protozero::Fields;
use esatto_schema::concurrent_session_event::{State, field};

use super::context::Context;
use super::tracks::{Dimension, TrackSpec};
use crate::tables::{ArgValue, signed};

impl Context {
    /// Imports a `ConcurrentSessionEvent`.
    pub(crate) fn import_session_event(&mut self, ts: i64, machine: u32, bytes: &[u8]) {
        let (mut state, mut name, mut session, mut uid, mut sources) = (0, Vec::new(), 0, 0, 0);
        for f in Fields::new(bytes) {
            match f.id {
                field::STATE => state = f.as_i32(),
                field::SESSION_NAME => name = f.as_bytes().to_vec(),
                field::SESSION_ID => session = f.as_u64(),
                field::CONSUMER_UID => uid = f.as_i32(),
                field::NUM_DATA_SOURCES => sources = f.as_u32(),
                _ => {}
            }
        }
        let value = match State(state) {
            State::STATE_DISABLED => "DISABLED",
            State::STATE_CONFIGURED => "CONFIGURED",
            State::STATE_STARTED => "STARTED",
            State::STATE_DISABLING_WAITING_STOP_ACKS => "DISABLING_WAITING_STOP_ACKS",
            State::STATE_CLONED_READ_ONLY => "CLONED_READ_ONLY",
            _ => {
                self.stats.count("concurrent_session_event_unknown_state");
                return;
            }
        };
        let mut name = String::from_utf8_lossy(&name).into_owned();
        if name.is_empty() {
            name = format!("Session {session}");
        }
        if State(state) == State::STATE_CLONED_READ_ONLY {
            // A clone has the name of the session that it is a clone of.
            name.push_str(" (clone)");
        }
        let name = Some(self.symbol(&name));
        let dimensions = [Dimension::Number("session_id", signed(session))];
        let machine = self.processes.machine_row(machine);
        let spec = TrackSpec { machine, ..TrackSpec::new("concurrent_tracing_sessions", name, &dimensions) };
        let (track, _) = self.tracks.intern(&mut self.tables, &spec);
        let mut args = vec![
            self.arg("consumer_uid", ArgValue::Int(uid.into())),
            self.arg("num_data_sources", ArgValue::Int(sources.into())),
        ];
        let value = self.symbol(value);
        self.set_state(track, ts, (None, Some(value)), &mut args);
        if State(state) == State::STATE_DISABLED {
            // The session is over.
            self.set_state(track, ts, (None, None), &mut Vec::new());
        }
    }
}
