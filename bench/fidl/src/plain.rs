//! The values as plain types, for `bincode` and `flatbuffers`.

use bincode::{Decode, Encode};

#[derive(Debug, Encode, Decode)]
pub(crate) struct Point {
    pub(crate) x: i64,
    pub(crate) y: i64,
    pub(crate) size: u32,
    pub(crate) color: u32,
}

#[derive(Debug, Encode, Decode)]
pub(crate) struct Points {
    pub(crate) points: Vec<Point>,
}

#[derive(Debug, Encode, Decode)]
pub(crate) struct Item {
    pub(crate) id: u64,
    pub(crate) price: f64,
    pub(crate) count: u32,
    pub(crate) valid: bool,
    pub(crate) name: String,
}
