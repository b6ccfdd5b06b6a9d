//! Sizes of frames (`docs/spec/wire-protocol.md` §2).

/// Bytes of the header in front of each frame.
pub const HEADER_LEN: usize = 4;
/// Largest frame a receiver accepts, in bytes, header included.
pub const MAX_FRAME: usize = 131_072;
/// Largest payload of a frame, in bytes. A header that announces more ends the connection.
pub const MAX_PAYLOAD: usize = MAX_FRAME - HEADER_LEN;

const _: () = assert!(MAX_PAYLOAD == 131_068);
