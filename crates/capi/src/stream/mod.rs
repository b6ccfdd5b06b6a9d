//! Memory that programs write encoded messages to (`docs/spec/c-abi.md` §§6, 7).
//!
//! A program writes into a [window](window::Window) by itself, and calls the library when the
//! window is full. The window is in a chunk of the trace (`packet`) or on the heap (`heap`).

mod heap;
mod heap_buffer;
mod packet;
mod window;
pub(crate) mod writer;

pub(crate) use writer::{Target, export_writer};
