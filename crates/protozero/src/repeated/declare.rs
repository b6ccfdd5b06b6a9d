//! What generated code declares its types with.

/// Declares the writer and the reader of a message; generated code adds the methods of its fields.
#[doc(hidden)]
#[macro_export]
macro_rules! message {
    ($(#[$writer_doc:meta])* writer $writer:ident; $(#[$reader_doc:meta])* reader $reader:ident;) => {
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
        pub struct $reader<'a>(&'a [u8]);

        impl<'a> From<&'a [u8]> for $reader<'a> {
            #[inline]
            fn from(bytes: &'a [u8]) -> Self {
                Self(bytes)
            }
        }

        impl<'a> $reader<'a> {
            /// A view over an encoded message; where it is malformed, it seems to end.
            #[inline]
            #[must_use]
            pub const fn new(bytes: &'a [u8]) -> Self {
                Self(bytes)
            }

            /// A view over an encoded message whose fields are whole; those of nested messages are not looked at.
            ///
            /// # Errors
            ///
            /// If `bytes` is malformed.
            #[inline]
            pub fn parse(bytes: &'a [u8]) -> Result<Self, $crate::DecodeError> {
                $crate::Fields::new(bytes).check()?;
                Ok(Self(bytes))
            }

            /// The encoded message.
            #[inline]
            #[must_use]
            pub const fn as_bytes(&self) -> &'a [u8] {
                self.0
            }

            /// All fields, in the order of the bytes.
            #[inline]
            #[must_use]
            pub const fn fields(&self) -> $crate::Fields<'a> {
                $crate::Fields::new(self.0)
            }
        }
    };
}

/// Declares an open enumeration: a newtype around the number, with a constant for each value of the schema.
#[doc(hidden)]
#[macro_export]
macro_rules! open_enum {
    (
        $(#[$doc:meta])*
        enum $name:ident, default $default:literal {
            $($(#[$value_doc:meta])* $value:ident = $number:literal, $text:literal;)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub i32);

        #[allow(missing_docs, non_upper_case_globals)]
        impl $name {
            $($(#[$value_doc])* pub const $value: Self = Self($number);)*
        }

        impl $name {
            /// The name of the value, if the schema has one.
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
