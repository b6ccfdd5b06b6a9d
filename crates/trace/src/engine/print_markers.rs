//! Marks that programs write into the kernel's trace: slices, counters and instants as text.

use super::context::Context;
use super::lanes::{LaneGroup, LaneUse};
use super::slices::{Begin, PENDING};
use super::tracks::{Dimension, TrackSpec};
use crate::tables::{ArgValue, Row};

impl Context {
    /// Imports a mark of a thread.
    pub(crate) fn print_marker(&mut self, ts: i64, machine: u32, utid: Row, tid: i64, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\0']);
        if self.read_marker(ts, machine, utid, tid, text).is_none() {
            self.stats.count("systrace_parse_failure");
        }
    }

    /// Returns `None` if the text is no mark.
    fn read_marker(&mut self, ts: i64, machine: u32, utid: Row, tid: i64, text: &str) -> Option<()> {
        let (phase, rest) = text.split_at_checked(1)?;
        if phase == "E" {
            let pid = rest.strip_prefix('|').and_then(|pid| pid.parse().ok());
            let utid = self.marker_thread(machine, utid, tid, pid.unwrap_or(0));
            let track = self.tracks.thread(&mut self.tables, utid);
            self.slices.end(&mut self.tables, &mut self.stats, track, ts, None, None);
            return Some(());
        }
        let (pid, rest) = rest.strip_prefix('|')?.split_once('|')?;
        let pid: i64 = pid.parse().ok()?;
        let utid = self.marker_thread(machine, utid, tid, pid);
        match phase {
            "B" => self.add_marker(ts, utid, PENDING, rest),
            "I" => self.add_marker(ts, utid, 0, rest),
            "C" => {
                let (name, value) = rest.rsplit_once('|')?;
                let value: i64 = value.parse().ok()?;
                let upid = self.processes.process(&mut self.tables, machine, pid);
                let name = self.symbol(name);
                let dimensions = [Dimension::Process(upid), Dimension::Symbol("name", name)];
                let machine_row = self.processes.machine_row(machine);
                let spec =
                    TrackSpec { machine: machine_row, ..TrackSpec::counter("atrace_counter", Some(name), &dimensions) };
                let (track, _) = self.tracks.intern(&mut self.tables, &spec);
                let row = self.add_counter(track, ts, value as f64);
                let mut args = vec![self.row_arg("utid", utid)];
                if let Some(set) = self.tables.args.add(&mut args) {
                    self.tables.counter.arg_set_id.set(row, set);
                }
            }
            "S" | "F" => {
                let (name, cookie) = rest.rsplit_once('|')?;
                self.async_marker(ts, (machine, pid), phase == "S", name, cookie.parse().ok()?);
            }
            "G" => {
                let (track, rest) = rest.split_once('|')?;
                let (name, cookie) = rest.rsplit_once('|')?;
                self.track_marker(ts, (machine, pid), utid, track, Some((name, PENDING)), cookie.parse().ok()?);
            }
            "H" => {
                let (track, rest) = rest.split_once('|')?;
                let cookie = rest.rsplit('|').next()?;
                self.track_marker(ts, (machine, pid), utid, track, None, cookie.parse().ok()?);
            }
            "N" => {
                let (track, name) = rest.split_once('|')?;
                self.track_marker(ts, (machine, pid), utid, track, Some((name, 0)), 0);
            }
            _ => return None,
        }
        Some(())
    }

    /// Notes the process of a thread that its mark tells.
    fn marker_thread(&mut self, machine: u32, utid: Row, tid: i64, pid: i64) -> Row {
        if pid == 0 {
            return utid;
        }
        self.processes.thread_of(&mut self.tables, machine, tid, pid)
    }

    fn add_marker(&mut self, ts: i64, utid: Row, dur: i64, name: &str) {
        let track = self.tracks.thread(&mut self.tables, utid);
        let name = Some(self.symbol(name));
        let begin = Begin { track, ts, dur, category: None, name, args: None };
        self.slices.begin(&mut self.tables, &mut self.stats, begin);
    }

    fn async_marker(&mut self, ts: i64, (machine, pid): (u32, i64), is_begin: bool, name: &str, cookie: i64) {
        let upid = Some(self.processes.process(&mut self.tables, machine, pid));
        let name = Some(self.symbol(name));
        let key = LaneGroup { kind: "atrace_async_slice", machine, upid, name, ..LaneGroup::default() };
        #[allow(clippy::cast_sign_loss, reason = "the same bits")]
        let member = cookie as u64;
        if is_begin {
            let mut args = vec![self.arg("cookie", ArgValue::Int(cookie))];
            let args = self.tables.args.add(&mut args);
            let begin = |track| Begin { track, ts, dur: PENDING, category: None, name, args };
            self.begin_in_group(key, member, LaneUse::Begin, begin);
        } else {
            self.end_in_group(key, member, ts);
        }
    }

    /// Imports a mark on a named track. Without a name it ends a slice.
    fn track_marker(
        &mut self,
        ts: i64,
        (machine, pid): (u32, i64),
        utid: Row,
        track: &str,
        slice: Option<(&str, i64)>,
        cookie: i64,
    ) {
        let upid = Some(self.processes.process(&mut self.tables, machine, pid));
        let track_name = Some(self.symbol(track));
        let kind = "atrace_async_slice_for_track";
        let key = LaneGroup { kind, machine, upid, name: track_name, ..LaneGroup::default() };
        #[allow(clippy::cast_sign_loss, reason = "the same bits")]
        let member = cookie as u64;
        if let Some((name, dur)) = slice {
            let name = Some(self.symbol(name));
            let mut args = vec![self.row_arg("utid", utid)];
            let args = self.tables.args.add(&mut args);
            let begin = |track| Begin { track, ts, dur, category: None, name, args };
            let lane_use = if dur == PENDING { LaneUse::Begin } else { LaneUse::Timed { ts, dur } };
            self.begin_in_group(key, member, lane_use, begin);
        } else if let Some(slice) = self.end_in_group(key, member, ts) {
            let arg = self.row_arg("end_utid", utid);
            self.extend_slice(slice, &[arg]);
        }
    }
}
