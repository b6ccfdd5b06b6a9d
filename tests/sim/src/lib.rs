//! The tracing service in a simulated world: everything that can go wrong, from one seed.
#![warn(missing_docs)]

pub mod alloc;
pub mod consumer;
pub mod content;
pub mod files;
pub mod hostile;
mod lifecycle;
pub mod memory;
pub mod model;
mod owner;
pub mod pb;
pub mod planted;
pub mod producer;
pub mod profile;
pub mod reference;
pub mod rng;
pub mod run;
pub mod runner;
mod verify;
pub mod world;
