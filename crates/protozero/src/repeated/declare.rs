//! Macros by which generated code declares its types.

/// Declares the writer and the reader of a message. Generated code adds the methods of its fields.
#[doc(hidden)]
#[macro_export]
macro_rules! message {
    (
        $(#[$writer_doc:meta])*
        writer $writer:ident;
        $(#[$reader_doc:meta])*
        reader $reader:ident;
        decoder $decoder:ident;
        fields $($id:literal),*;
    ) => {
        $(#[$writer_doc])*
        #[derive(Debug)]
        pub struct $writer<'w>($crate::Message<'w>);

        impl<'w> From<$crate::Message<'w>> for $writer<'w> {
            #[inline]
            fn from(message: $crate::Message<'w>) -> Self {
                Self(message)
            }
        }

        impl $crate::Writer for $writer<'_> {
            type At<'w> = $writer<'w>;
        }

        impl<'w> $writer<'w> {
            /// The untyped message.
            #[inline]
            pub fn message(&mut self) -> &mut $crate::Message<'w> {
                &mut self.0
            }
        }

        $(#[$reader_doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $reader<'a, I = $crate::Scan>($crate::View<'a, I>);

        #[doc = concat!("A [`", stringify!($reader), "`] that knows where each field is.")]
        pub type $decoder<'a> = $reader<'a, $crate::Index<$reader<'static>>>;

        impl $crate::Schema for $reader<'static> {
            const FIELDS: &'static [u32] = &[$($id),*];
            const TABLE: &'static [u8] =
                &$crate::table::<{ $crate::table_len(<$reader<'static> as $crate::Schema>::FIELDS) }>(Self::FIELDS);
            type Slots = [$crate::Slot; $crate::slots(<$reader<'static> as $crate::Schema>::FIELDS)];
        }

        impl<'a> From<&'a [u8]> for $reader<'a> {
            #[inline]
            fn from(bytes: &'a [u8]) -> Self {
                Self::new(bytes)
            }
        }

        impl<'a> $reader<'a> {
            /// Makes a view over an encoded message. The message seems to end at a malformed field.
            #[inline]
            #[must_use]
            pub const fn new(bytes: &'a [u8]) -> Self {
                Self($crate::View::new(bytes))
            }

            /// Makes a view over an encoded message after checking its fields. Those of nested
            /// messages are not checked.
            ///
            /// # Errors
            ///
            /// If `bytes` is malformed.
            #[inline]
            pub fn parse(bytes: &'a [u8]) -> Result<Self, $crate::DecodeError> {
                $crate::Fields::new(bytes).check()?;
                Ok(Self::new(bytes))
            }

            /// Returns the same message with an index, for reading more than one or two fields.
            #[inline]
            #[must_use]
            pub fn decoder(self) -> $decoder<'a> {
                <$decoder<'a>>::decode(self.as_bytes())
            }
        }

        impl<'a> $reader<'a, $crate::Index<$reader<'static>>> {
            /// Finds the fields of an encoded message in one pass. The message seems to end at a
            /// malformed field.
            #[inline]
            #[must_use]
            pub fn decode(bytes: &'a [u8]) -> Self {
                Self($crate::View::indexed(bytes))
            }
        }

        impl<'a, I: $crate::Lookup> $reader<'a, I> {
            /// The encoded message.
            #[inline]
            #[must_use]
            pub const fn as_bytes(&self) -> &'a [u8] {
                self.0.as_bytes()
            }

            /// All fields, in the order of the bytes.
            #[inline]
            #[must_use]
            pub const fn fields(&self) -> $crate::Fields<'a> {
                $crate::Fields::new(self.0.as_bytes())
            }

            /// Iterates over the fields whose numbers the schema does not have, in the order of the
            /// bytes.
            #[inline]
            #[must_use]
            pub const fn unknown_fields(&self) -> $crate::UnknownFields<'a, $reader<'static>> {
                $crate::UnknownFields::new(self.0.as_bytes())
            }

            /// Checks that all fields are whole. Those of nested messages are not checked.
            ///
            /// # Errors
            ///
            /// The offset of the first malformed field.
            #[inline]
            pub fn check(&self) -> Result<(), $crate::DecodeError> {
                self.0.check()
            }
        }
    };
}

/// Declares an open enumeration: a newtype around the number, with a constant for each value of the
/// schema, and perhaps one with another name.
#[doc(hidden)]
#[macro_export]
macro_rules! open_enum {
    (
        $(#[$doc:meta])*
        enum $name:ident, default $default:literal {
            $($(#[$value_doc:meta])* $value:ident = $number:literal, $text:literal;)*
        }
        $(names {
            $($(#[$alias_doc:meta])* $alias:ident = $alias_number:literal;)*
        })?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub i32);

        #[allow(missing_docs, non_upper_case_globals)]
        impl $name {
            $($(#[$value_doc])* pub const $value: Self = Self($number);)*
            $($($(#[$alias_doc])* pub const $alias: Self = Self($alias_number);)*)?
        }

        impl $name {
            /// Returns the name of the value, if the schema has one.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                // Two names may share a number.
                #[allow(unreachable_patterns)]
                match self.0 {
                    $($number => Some($text),)*
                    _ => None,
                }
            }
        }

        impl Default for $name {
            #[inline]
            fn default() -> Self {
                Self($default)
            }
        }

        impl From<i32> for $name {
            #[inline]
            fn from(number: i32) -> Self {
                Self(number)
            }
        }

        impl From<$name> for i32 {
            #[inline]
            fn from(value: $name) -> Self {
                value.0
            }
        }

        impl ::core::fmt::Debug for $name {
            #[inline]
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}", self.0),
                }
            }
        }
    };
}
