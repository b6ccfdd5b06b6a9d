//! The events of a file in the order in which the trace processor takes them.

use core::cmp::Reverse;
use std::collections::VecDeque;
use std::io;

use super::event::Event;
use esatto_trace::sorter::Sorted;

/// Events of one moment that are put in order; if there are more, they keep that of the file.
const MAX_MOMENT: usize = 4096;

/// Events in the order of time.
///
/// Events of the same moment keep the order of the file, unless there is a complete slice (`X`)
/// among them: then ends come first, and longer slices before shorter ones, so that they contain
/// them. Chrome writes a slice when it ends, and so its inner ones first.
#[derive(Debug)]
pub(super) struct Ordered {
    sorted: Sorted,
    moment: VecDeque<(i64, Event)>,
    number: u64,
}

impl Ordered {
    pub(super) fn new(sorted: Sorted) -> Self {
        Self { sorted, moment: VecDeque::new(), number: 0 }
    }

    /// Goes back to the first event.
    pub(super) fn rewind(&mut self) -> io::Result<()> {
        self.moment.clear();
        self.number = 0;
        self.sorted.rewind()
    }

    /// Returns the number of the next event, its time, and the event.
    pub(super) fn next(&mut self) -> io::Result<Option<(u64, i64, Event)>> {
        if self.moment.is_empty() {
            self.read_moment()?;
        }
        let Some((ts, event)) = self.moment.pop_front() else { return Ok(None) };
        self.number += 1;
        Ok(Some((self.number, ts, event)))
    }

    fn read_moment(&mut self) -> io::Result<()> {
        let mut moment = Vec::new();
        while let Some((ts, json)) = self.sorted.next_record()? {
            moment.extend(Event::parse(json).map(|event| (ts, event)));
            if moment.len() >= MAX_MOMENT || self.sorted.peek()?.is_none_or(|(next, _)| next != ts) {
                break;
            }
        }
        if moment.len() > 1 && moment.iter().any(|(_, event)| event.phase == 'X') {
            put_in_order(&mut moment);
        }
        self.moment = moment.into();
        Ok(())
    }
}

fn put_in_order(moment: &mut Vec<(i64, Event)>) {
    let is_pair = |at: usize, moment: &[(i64, Event)]| {
        let end = &moment[at].1;
        moment[..at].iter().any(|(_, event)| event.phase == 'B' && (&event.pid, &event.tid) == (&end.pid, &end.tid))
    };
    let keys: Vec<(bool, Reverse<i64>)> = (0..moment.len())
        .map(|at| match (moment[at].1.phase, moment[at].1.dur) {
            ('E', _) => (is_pair(at, moment), Reverse(0)),
            ('X', Some(dur)) => (true, Reverse(dur)),
            _ => (true, Reverse(0)),
        })
        .collect();
    let mut keyed: Vec<_> = keys.into_iter().zip(moment.drain(..)).collect();
    keyed.sort_by_key(|(key, _)| *key);
    moment.extend(keyed.into_iter().map(|(_, event)| event));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(events: &[(char, &str, i64)]) -> String {
        let event = |&(phase, name, dur): &(char, &str, i64)| {
            let json = format!(r#"{{"ph":"{phase}","name":"{name}","dur":{dur}}}"#);
            (0, Event::parse(json.as_bytes()).unwrap())
        };
        let mut moment: Vec<_> = events.iter().map(event).collect();
        put_in_order(&mut moment);
        moment.iter().map(|(_, event)| event.name.as_str()).collect()
    }

    #[test]
    fn longer_slices_come_first_and_ends_before_them() {
        assert_eq!(ordered(&[('i', "i", 0), ('X', "s", 1), ('X', "l", 5), ('E', "e", 0)]), "elsi");
        assert_eq!(ordered(&[('X', "a", 5), ('X', "b", 5)]), "ab");
    }

    #[test]
    fn an_end_stays_after_the_begin_of_its_moment() {
        assert_eq!(ordered(&[('B', "b", 0), ('E', "e", 0), ('X', "x", 1)]), "xbe");
    }
}
