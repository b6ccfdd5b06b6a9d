//! The values that the cases write.

/// Values of the flat message, and of every level of the nested one: upstream's values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flat {
    pub(crate) int32: i32,
    pub(crate) uint32: u32,
    pub(crate) int64: i64,
    pub(crate) uint64: u64,
    pub(crate) string: &'static str,
}

pub(crate) static FLAT: Flat = Flat {
    int32: 0x1234_5678,
    uint32: 0x90ab_cdef,
    int64: 0x1111_1111,
    uint64: 0xffff_ffff,
    string: "fffffffffffffffffffffffffffffff",
};

/// Levels of the nested message, the root included.
pub(crate) const LEVELS: usize = 5;

/// Values of the packet with a track event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) timestamp_ns: u64,
    pub(crate) sequence: u32,
    pub(crate) flags: u32,
    pub(crate) category: u64,
    pub(crate) name: u64,
    pub(crate) track: u64,
    pub(crate) number: u64,
    pub(crate) text: &'static str,
}

pub(crate) static PACKET: Packet = Packet {
    timestamp_ns: 1_234_567_890_123_456,
    sequence: 7,
    flags: 2,
    category: 1,
    name: 2,
    track: 0x9e37_79b9_7f4a_7c15,
    number: 123_456,
    text: "fifteen bytes !",
};
