//! Programs in C that use the library in forbidden or rare ways.

mod build;
mod cancel;
mod ends;
mod forks;
mod misuse;
mod races;
