//! Programs in C that do to the library what programs should not, or seldom do.

mod build;
mod ends;
mod forks;
mod misuse;
mod races;
