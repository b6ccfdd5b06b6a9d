//! The syntax from before 2021, read into the same tree.
//!
//! The type comes before the name, parameters of methods are a list, and `?` makes a type optional.
//! Enums, bits and unions are strict unless `flexible` is written. Protocols are closed. No layout
//! is declared as a resource.

mod declarations;
mod detect;
mod protocols;
mod types;

pub(super) use self::detect::detect;
