//! Writers that values are written to.

use core::fmt;

use esatto_protozero::Writer;
use esatto_schema::{DebugAnnotationWriter, TrackEventWriter, debug_annotation};

use super::formatted::format_into;
use crate::event::{AnnotationNames, TraceArgs, Value};
use crate::name::Name;

/// Takes one value: an annotation, an entry of a dictionary or an element of an array.
///
/// Each method writes the value and consumes the writer, so there is never more than one. A writer
/// that is dropped unused leaves an entry without value, which readers skip.
#[derive(Debug)]
pub struct AnnotationWriter<'a> {
    out: DebugAnnotationWriter<'a>,
    names: &'a mut AnnotationNames,
}

macro_rules! scalars {
    ($($(#[$doc:meta])* $name:ident($t:ty) = $method:ident;)*) => {
        $($(#[$doc])*
        #[inline]
        pub fn $name(mut self, value: $t) {
            self.out.$method(value);
        })*
    };
}

impl<'a> AnnotationWriter<'a> {
    pub(crate) fn new(out: DebugAnnotationWriter<'a>, names: &'a mut AnnotationNames) -> Self {
        Self { out, names }
    }

    scalars! {
        /// Writes an unsigned integer.
        uint(u64) = uint_value;
        /// Writes a signed integer.
        int(i64) = int_value;
        /// Writes a float.
        double(f64) = double_value;
        /// Writes a boolean.
        bool(bool) = bool_value;
        /// Writes a text.
        text(&str) = string_value;
        /// Writes an address; 0 is the null pointer.
        pointer(u64) = pointer_value;
        /// Writes JSON text, which readers parse.
        json(&str) = legacy_json_value;
    }

    /// Writes a text that is defined once per sequence and then referred to by a number. Use it for
    /// texts that repeat, because it costs a look-up. Long texts, and those after some thousand
    /// different ones, are written in full.
    pub fn interned_text(mut self, text: &str) {
        match self.names.tables.string_value(text) {
            Some(iid) => self.out.string_value_iid(iid),
            None => self.out.string_value(text),
        };
    }

    /// Writes a formatted text, without allocating. Text beyond 64 KiB is cut off.
    ///
    /// ```
    /// # use esatto::{AnnotationWriter, Value};
    /// struct Version(u8, u8);
    ///
    /// impl Value for Version {
    ///     fn write(&self, out: AnnotationWriter<'_>) {
    ///         out.formatted(format_args!("v{}.{}", self.0, self.1));
    ///     }
    /// }
    /// ```
    pub fn formatted(mut self, text: fmt::Arguments<'_>) {
        format_into(self.out.message().begin(debug_annotation::field::STRING_VALUE), text);
    }

    /// Writes an encoded message. `type_name` is its full name with a dot in front, such as
    /// `".perfetto.protos.SourceLocation"`; a reader that knows the type shows its fields.
    pub fn proto(mut self, type_name: &str, bytes: &[u8]) {
        self.type_name(type_name);
        self.out.proto_value(bytes);
    }

    /// As [`proto`](Self::proto), encoding the message in place.
    pub fn proto_with<W: Writer>(mut self, type_name: &str, write: impl FnOnce(&mut W::At<'_>)) {
        self.type_name(type_name);
        write(&mut W::At::from(self.out.message().begin(debug_annotation::field::PROTO_VALUE)));
    }

    fn type_name(&mut self, name: &str) {
        match self.names.tables.type_name(name) {
            Some(iid) => self.out.proto_type_name_iid(iid),
            None => self.out.proto_type_name(name),
        };
    }

    /// Begins a dictionary.
    #[inline]
    pub fn dict(self) -> DictWriter<'a> {
        DictWriter { out: Entries::Dict(self.out), names: self.names }
    }

    /// Begins an array.
    #[inline]
    pub fn list(self) -> ListWriter<'a> {
        ListWriter { out: self.out, names: self.names }
    }

    /// Returns the writer for every field of `DebugAnnotation` that has no method here.
    #[inline]
    pub fn fields(&mut self) -> &mut DebugAnnotationWriter<'a> {
        &mut self.out
    }
}

/// Takes named values: the entries of a dictionary, or the annotations of an event.
///
/// ```
/// # esatto::categories! { static NET = "net"; }
/// esatto::instant!(NET, "request", headers = esatto::dict(|headers| {
///     headers.add("method", "GET").add("sizes", [1, 2]);
///     headers.dict("client").add("port", 80);
/// }));
/// ```
#[derive(Debug)]
pub struct DictWriter<'a> {
    out: Entries<'a>,
    names: &'a mut AnnotationNames,
}

enum Entries<'a> {
    /// The entries of a dictionary.
    Dict(DebugAnnotationWriter<'a>),
    /// The annotations of an event.
    Event(&'a mut (dyn Annotated + 'a)),
}

impl Entries<'_> {
    fn begin(&mut self) -> DebugAnnotationWriter<'_> {
        match self {
            Self::Dict(out) => out.dict_entries(),
            Self::Event(event) => event.annotation(),
        }
    }
}

impl fmt::Debug for Entries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dict(_) => "Dict",
            Self::Event(_) => "Event",
        })
    }
}

/// An event with any lifetime.
trait Annotated {
    fn annotation(&mut self) -> DebugAnnotationWriter<'_>;
}

impl Annotated for TrackEventWriter<'_> {
    fn annotation(&mut self) -> DebugAnnotationWriter<'_> {
        self.debug_annotations()
    }
}

impl<'a> DictWriter<'a> {
    /// Makes a writer for the annotations of an event.
    pub(crate) fn of_event(event: &'a mut TrackEventWriter<'_>, names: &'a mut AnnotationNames) -> Self {
        Self { out: Entries::Event(event), names }
    }

    /// Adds a value.
    pub fn add(&mut self, name: &str, value: impl Value) -> &mut Self {
        value.write(self.entry(name));
        self
    }

    /// Adds a value whose name is defined once per sequence, as `#[derive(TraceArgs)]` does for
    /// each field.
    pub fn add_static(&mut self, name: &'static Name, value: &dyn Value) -> &mut Self {
        let iid = self.names.number(name);
        let mut out = self.out.begin();
        out.name_iid(iid);
        value.write(AnnotationWriter { out, names: self.names });
        self
    }

    /// Begins a value with this name.
    #[inline]
    pub fn entry(&mut self, name: &str) -> AnnotationWriter<'_> {
        let mut out = self.out.begin();
        out.name(name);
        AnnotationWriter { out, names: self.names }
    }

    /// Begins a value with a formatted name, without allocating.
    pub fn formatted_entry(&mut self, name: fmt::Arguments<'_>) -> AnnotationWriter<'_> {
        let mut out = self.out.begin();
        format_into(out.message().begin(debug_annotation::field::NAME), name);
        AnnotationWriter { out, names: self.names }
    }

    /// Begins a dictionary in this one.
    pub fn dict(&mut self, name: &str) -> DictWriter<'_> {
        self.entry(name).dict()
    }

    /// Begins an array in this dictionary.
    pub fn list(&mut self, name: &str) -> ListWriter<'_> {
        self.entry(name).list()
    }

    /// Adds all parts of a value.
    pub fn args(&mut self, args: &(impl TraceArgs + ?Sized)) -> &mut Self {
        args.write_args(self);
        self
    }
}

/// Takes the elements of an array.
#[derive(Debug)]
pub struct ListWriter<'a> {
    out: DebugAnnotationWriter<'a>,
    names: &'a mut AnnotationNames,
}

impl ListWriter<'_> {
    /// Adds an element.
    pub fn push(&mut self, value: impl Value) -> &mut Self {
        value.write(self.element());
        self
    }

    /// Begins an element.
    #[inline]
    pub fn element(&mut self) -> AnnotationWriter<'_> {
        AnnotationWriter { out: self.out.array_values(), names: self.names }
    }

    /// Begins a dictionary as an element.
    pub fn dict(&mut self) -> DictWriter<'_> {
        self.element().dict()
    }

    /// Begins an array as an element.
    pub fn list(&mut self) -> ListWriter<'_> {
        self.element().list()
    }
}
