//! Triggers: instants at which something asked to keep the trace.

use esatto_protozero::Fields;
use esatto_schema::{chrome_trigger, trace_packet::field as packet_field, trigger};

use super::context::Context;
use super::slices::Begin;
use super::stats::Fact;
use super::tracks::TrackSpec;
use crate::tables::ArgValue;

const FACT: &str = "trace_trigger";

impl Context {
    /// Imports a packet of a trigger.
    pub(crate) fn import_trigger(&mut self, ts: i64, machine: u32, id: u32, bytes: &[u8]) {
        let name = Some(self.symbol("Trace Triggers"));
        let machine_row = self.processes.machine_row(machine);
        let spec = TrackSpec { machine: machine_row, ..TrackSpec::new("triggers", name, &[]) };
        let (track, _) = self.tracks.intern(&mut self.tables, &spec);
        let find = |id: u32| Fields::new(bytes).filter(|f| f.id == id).last();
        let mut args = Vec::new();
        let name = if id == packet_field::CHROME_TRIGGER {
            use chrome_trigger::field;
            let hash = find(field::TRIGGER_NAME_HASH).map_or(0, |hash| hash.as_u32());
            args.push(self.arg("chrome_trigger.name_hash", ArgValue::Uint(u64::from(hash))));
            match find(field::TRIGGER_NAME) {
                Some(name) => {
                    let name = self.tables.strings.add(name.as_bytes());
                    args.push(self.arg("chrome_trigger.name", ArgValue::Text(Some(name))));
                    name
                }
                None => self.symbol("chrome_trigger"),
            }
        } else {
            use trigger::field;
            if let Some(producer) = find(field::PRODUCER_NAME) {
                let producer = ArgValue::Text(Some(self.tables.strings.add(producer.as_bytes())));
                args.push(self.arg("producer_name", producer));
            }
            if let Some(uid) = find(field::TRUSTED_PRODUCER_UID) {
                args.push(self.arg("trusted_producer_uid", ArgValue::Int(uid.as_i64())));
            }
            let name = self.tables.strings.add(find(field::TRIGGER_NAME).map_or(&[][..], |name| name.as_bytes()));
            self.note_trigger(ts, id == packet_field::CLONE_SNAPSHOT_TRIGGER, name);
            name
        };
        let args = self.tables.args.add(&mut args);
        let begin = Begin { track, ts, dur: 0, category: None, name: Some(name), args };
        let slice = self.slices.begin(&mut self.tables, &mut self.stats, begin);
        if id == packet_field::CHROME_TRIGGER {
            if let (Some(slice), Some(flow)) = (slice, find(chrome_trigger::field::FLOW_ID)) {
                self.flows.end(&mut self.tables, machine, flow.as_u64(), slice, true);
            }
        }
    }

    /// Keeps the name of the first trigger, or else of the first one that cloned the session.
    fn note_trigger(&mut self, ts: i64, is_clone: bool, name: crate::string_table::Symbol) {
        const CLONE_TIME: &str = "traced_clone_trigger_timestamp_ns";
        let has_clone = self.stats.get(CLONE_TIME, None) != 0;
        if (is_clone && !has_clone) || !self.facts.contains_key(FACT) {
            let name = self.tables.strings.owned(name);
            self.set_fact(FACT, Fact::Text(name));
        }
        if is_clone && !has_clone {
            self.stats.set(CLONE_TIME, None, ts);
        }
    }
}
