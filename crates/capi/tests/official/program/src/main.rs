//! Uses every public item of the official crate `perfetto-sdk` on our library. It checks the
//! results, and leaves a trace for each session in the folder of its first argument. With a second
//! argument, the service of the system records it.

mod data_sources;
mod encoding;
mod events;
mod messages;
mod session;

use std::path::PathBuf;
use std::time::Duration;

use perfetto_sdk::producer::{Backends, Producer, ProducerError, ProducerInitArgs, ProducerInitArgsBuilder};

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let folder = PathBuf::from(arguments.next().expect("a folder"));
    let backends = if arguments.next().is_some() { Backends::SYSTEM } else { Backends::IN_PROCESS };
    session::use_system(backends == Backends::SYSTEM);

    encoding::everything();
    messages::all();
    events::before_initialisation();
    data_sources::before_initialisation();

    let args = ProducerInitArgsBuilder::new().backends(backends).shmem_size_hint_kb(1024).machine_id(0);
    let args: &ProducerInitArgs = args.build();
    Producer::init(args);
    Producer::init(args);
    assert_eq!(Producer::activate_trigger("nobody waits", Duration::from_millis(10)), Ok(()));
    let nul = Producer::activate_trigger("nul \0", Duration::ZERO);
    assert!(matches!(nul, Err(ProducerError::InvalidString(_))));
    let long = Producer::activate_trigger("long", Duration::from_secs(u64::MAX / 2));
    assert!(matches!(long, Err(ProducerError::InvalidTTL(_))));

    data_sources::everything(&folder);
    events::everything(&folder);
    session::a_trigger_ends_it();
}
