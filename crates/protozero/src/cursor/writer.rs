//! Trait of the types that append the fields of a message.

use super::message::Message;

/// Type that appends the fields of a kind of message: a generated `FooWriter`, or the untyped
/// [`Message`].
///
/// Sinks have it as a parameter, and return typed root messages:
///
/// ```
/// # mod shop {
/// #     esatto_protozero::message! { writer OrderWriter; reader OrderReader; decoder OrderDecoder; fields 1; }
/// #     impl OrderWriter<'_> {
/// #         pub fn number(&mut self, v: u64) -> &mut Self { self.message().varint(1, v); self }
/// #     }
/// # }
/// # use shop::OrderWriter;
/// use esatto_protozero::HeapBuffer;
///
/// let mut buffer = HeapBuffer::<OrderWriter>::default();
/// buffer.message().number(42); // a method of OrderWriter
/// assert_eq!(buffer.as_slice(), b"\x08\x2a");
/// ```
pub trait Writer {
    /// The same type with another lifetime.
    type At<'w>: From<Message<'w>>;
}

impl Writer for Message<'_> {
    type At<'w> = Message<'w>;
}
