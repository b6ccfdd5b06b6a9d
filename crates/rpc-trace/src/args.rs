//! [`Args`]: the arguments of an event.

use esatto::Arg;
use esatto_ipc::hooks::Call;

/// The most arguments of an event: three of every call, a status, values, and two flows.
const MOST: usize = 7;

/// Arguments of an event, of which some are left out.
#[derive(Debug)]
pub(crate) struct Args<'a> {
    all: [Arg<'a>; MOST],
    len: usize,
}

impl<'a> Args<'a> {
    /// Makes those that all events of a call have: its role, its number, and a message's size.
    #[inline(always)]
    pub(crate) fn of(call: &Call, bytes: usize) -> Self {
        let mut args = Self { all: [const { Arg::U64(0) }; MOST], len: 0 };
        args.push(Arg::Str(crate::role(call)));
        args.push(Arg::U64(call.request_id));
        args.push(Arg::U64(bytes as u64));
        args
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, arg: Arg<'a>) {
        self.all[self.len] = arg;
        self.len += 1;
    }

    /// Adds a flow, unless the peer knows no number of the connection.
    #[inline(always)]
    pub(crate) fn flow(&mut self, call: &Call, flow: Arg<'a>) {
        if call.seed != 0 {
            self.push(flow);
        }
    }

    #[inline(always)]
    pub(crate) fn all(&mut self) -> &mut [Arg<'a>] {
        &mut self.all[..self.len]
    }
}
