//! Sites: everything about a trace point that is known before it runs.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use esatto_schema::track_event;

use crate::category::Category;
use crate::event::{Kind, Place};
use crate::name::Name;

/// The longest encoding of the constant part of an event.
const MAX_BODY: usize = 16;

/// A trace point: category, kind, name and the names of its arguments, usually a `static` made by a
/// macro.
///
/// Programs that make trace points at run time leak a site ([`Box::leak`]) and pass it to
/// [`record`](crate::record): it costs as little as the site of a macro. Two sites may be equal.
///
/// ```
/// # esatto::categories! { static APP = "app"; }
/// use esatto::{Arg, Kind, Name, Site};
///
/// static NAMES: [Name; 1] = [Name::new("answer")];
/// static SITE: Site = Site::new(&APP, Kind::Instant, Some("hello"), &NAMES);
///
/// esatto::record(&SITE, &mut [Arg::U64(42)]);
/// ```
#[derive(Debug)]
pub struct Site {
    /// A number in the process, from 1. While it is 0, before the first use, the fields below are
    /// not set.
    number: AtomicU32,
    body_len: AtomicU32,
    /// The encoded fields that are equal in all events: type, category and name.
    body: [AtomicU64; MAX_BODY / 8],
    category: &'static Category,
    kind: Kind,
    name: Option<Name>,
    arguments: &'static [Name],
    place: Option<&'static Place>,
}

impl Site {
    /// Describes a trace point. `arguments` are the names of its debug annotations, in the order of
    /// their values.
    #[must_use]
    pub const fn new(
        category: &'static Category,
        kind: Kind,
        name: Option<&'static str>,
        arguments: &'static [Name],
    ) -> Self {
        let name = match name {
            Some(name) => Some(Name::new(name)),
            None => None,
        };
        Self {
            number: AtomicU32::new(0),
            body_len: AtomicU32::new(0),
            body: [const { AtomicU64::new(0) }; MAX_BODY / 8],
            category,
            kind,
            name,
            arguments,
            place: None,
        }
    }

    /// Adds the place in the source code to all events of the site.
    #[doc(hidden)]
    #[must_use]
    pub const fn located(mut self, place: &'static Place) -> Self {
        self.place = Some(place);
        self
    }

    /// Returns the category.
    #[must_use]
    pub const fn category(&self) -> &'static Category {
        self.category
    }

    /// Returns the kind of the events.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the name of the events, if it is constant.
    #[must_use]
    pub const fn name(&self) -> Option<&'static str> {
        match &self.name {
            Some(name) => Some(name.text()),
            None => None,
        }
    }

    /// Returns the interned name.
    pub(crate) const fn event_name(&self) -> Option<&Name> {
        self.name.as_ref()
    }

    /// Returns the category, if events of this kind contain it (`docs/spec/track-event.md` §4).
    pub(crate) const fn written_category(&self) -> Option<&'static Category> {
        match self.kind {
            Kind::SliceEnd | Kind::Counter => None,
            Kind::SliceBegin | Kind::Instant | Kind::State | Kind::Legacy => Some(self.category),
        }
    }

    /// Returns whether the body holds all constant fields: one type, and at most one category.
    pub(crate) fn is_plain(&self) -> bool {
        self.kind.number().is_some()
            && !self.category.is_group()
            && !core::ptr::eq(self.category, Category::of_argument())
    }

    /// Returns the names of the arguments.
    #[inline(always)]
    pub(crate) const fn arguments(&self) -> &'static [Name] {
        self.arguments
    }

    /// Returns the place of the events, if the site has one.
    pub(crate) const fn place(&self) -> Option<&'static Place> {
        self.place
    }

    /// Returns the number of this site; 0 before the first call of [`number`](Self::number).
    #[inline(always)]
    pub(crate) fn known_number(&self) -> u32 {
        // Acquire: a thread that sees the number also sees the body.
        self.number.load(Ordering::Acquire)
    }

    /// Returns the number of this site, assigned at the first call.
    pub(crate) fn number(&'static self) -> u32 {
        match self.known_number() {
            0 => self.prepare(),
            number => number,
        }
    }

    /// Returns the constant fields and their length in bytes. Valid once there is a number.
    #[inline(always)]
    pub(crate) fn body(&self) -> ([u64; MAX_BODY / 8], usize) {
        let body = [self.body[0].load(Ordering::Relaxed), self.body[1].load(Ordering::Relaxed)];
        (body, self.body_len.load(Ordering::Relaxed) as usize)
    }

    #[cold]
    #[inline(never)]
    fn prepare(&'static self) -> u32 {
        static NUMBERS: AtomicU32 = AtomicU32::new(0);
        let mut body = Body::default();
        if let Some(event_type) = self.kind.number() {
            body.field(track_event::field::TYPE, event_type.0 as u32);
        }
        if let Some(category) = self.written_category() {
            body.field(track_event::field::CATEGORY_IIDS, category.interned_name().iid());
        }
        if let Some(name) = &self.name {
            body.field(track_event::field::NAME_IID, name.iid());
        }
        if let Some(place) = self.place {
            body.location(place.number());
        }
        self.body[0].store(body.word(0), Ordering::Relaxed);
        self.body[1].store(body.word(8), Ordering::Relaxed);
        self.body_len.store(body.len as u32, Ordering::Relaxed);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed) + 1;
        // If two threads get here at once, both store the same body, and one number is lost.
        self.number.store(number, Ordering::Release);
        number
    }
}

/// Encoder of the constant part.
#[derive(Default)]
struct Body {
    bytes: [u8; MAX_BODY],
    len: usize,
}

impl Body {
    /// Adds a varint field with a number below 16.
    fn field(&mut self, field: u32, value: u32) {
        self.byte((field as u8) << 3);
        self.varint(value);
    }

    fn varint(&mut self, value: u32) {
        let mut rest = value;
        while rest >= 0x80 {
            self.byte(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.byte(rest as u8);
    }

    /// Adds the location, unless the numbers are so large that there is no space.
    fn location(&mut self, number: u32) {
        const FIELD: u32 = track_event::field::SOURCE_LOCATION_IID << 3;
        const TAG: [u8; 2] = [FIELD as u8 | 0x80, (FIELD >> 7) as u8];
        const _: () = assert!(FIELD >= 0x80 && FIELD < 0x4000);
        let bytes_of_number = (38 - number.leading_zeros() as usize) / 7;
        if self.len + TAG.len() + bytes_of_number <= MAX_BODY {
            TAG.into_iter().for_each(|byte| self.byte(byte));
            self.varint(number);
        }
    }

    fn byte(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    fn word(&self, from: usize) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.bytes[from..from + 8]);
        u64::from_le_bytes(word)
    }
}

/// A type, and two numbers of 32 bits: all bodies fit.
const _: () = assert!(2 + 2 * (1 + 5) <= MAX_BODY);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_holds_type_category_and_name() {
        static CATEGORY: Category = Category::new("site::tests");
        static SITE: Site = Site::new(&CATEGORY, Kind::Instant, Some("name"), &[]);
        let number = SITE.number();
        assert_ne!(number, 0);
        assert_eq!(SITE.number(), number);
        let (words, len) = SITE.body();
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).take(len).collect();
        let mut expected = esatto_protozero::HeapBuffer::<esatto_protozero::Message<'_>>::default();
        let mut message = expected.message();
        message.varint(9, 3);
        message.varint(3, u64::from(CATEGORY.interned_name().iid()));
        message.varint(10, u64::from(SITE.event_name().unwrap().iid()));
        drop(message);
        assert_eq!(bytes, expected.to_vec());
    }

    #[test]
    fn the_body_holds_a_location_if_there_is_space() {
        for (number, len) in [(1, 3), (0x7f, 3), (0x80, 4), (u32::MAX, 7)] {
            let mut body = Body::default();
            body.location(number);
            assert_eq!(body.len, len, "{number}");
            let mut full = Body { len: MAX_BODY + 1 - len, ..Body::default() };
            full.location(number);
            assert_eq!(full.len, MAX_BODY + 1 - len, "no room: {number}");
        }
    }
}
