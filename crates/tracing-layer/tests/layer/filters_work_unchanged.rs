use tracing_subscriber::filter::{EnvFilter, LevelFilter};
use tracing_subscriber::prelude::*;

use super::{name, record};

fn work() {
    tracing::info_span!("info").in_scope(|| tracing::debug!("debug event"));
    tracing::debug_span!("debug").in_scope(|| ());
    tracing::debug_span!(target: "chosen", "chosen").in_scope(|| ());
}

fn names(subscriber: impl Into<tracing::Dispatch>) -> Vec<String> {
    record(&subscriber.into(), work).slices.iter().map(|slice| name(slice).to_owned()).collect()
}

#[test]
fn env_filter_of_all_layers() {
    let layer = tracing_subscriber::registry().with(EnvFilter::new("info,chosen=debug")).with(esatto_tracing::layer());
    assert_eq!(names(layer), ["info", "chosen"]);
    assert_eq!(names(esatto_tracing::subscriber().with(EnvFilter::new("info,chosen=debug"))), ["info", "chosen"]);
}

#[test]
fn env_filter_of_this_layer() {
    let layer = esatto_tracing::layer().with_filter(EnvFilter::new("off,chosen=debug"));
    assert_eq!(names(tracing_subscriber::registry().with(layer)), ["chosen"]);
}

#[test]
fn levels() {
    let layer = esatto_tracing::layer().with_filter(LevelFilter::INFO);
    assert_eq!(names(tracing_subscriber::registry().with(layer)), ["info"]);
    let options = || esatto_tracing::options().max_level(LevelFilter::INFO);
    assert_eq!(names(options().subscriber()), ["info"]);
    assert_eq!(names(tracing_subscriber::registry().with(options().layer())), ["info"]);
}

#[test]
fn options_of_ours() {
    let options = || esatto_tracing::options().enabled(|metadata| metadata.target() == "chosen");
    assert_eq!(names(options().subscriber()), ["chosen"]);
    assert_eq!(names(tracing_subscriber::registry().with(options().layer())), ["chosen"]);
}

#[test]
fn spans_that_another_layer_wants_are_there_for_it() {
    let quiet = esatto_tracing::options().max_level(LevelFilter::OFF).layer();
    let other = esatto_tracing::options().category(|_| "other").layer();
    let subscriber = tracing_subscriber::registry().with(quiet).with(other);
    let trace = record(&subscriber.into(), work);
    assert!(trace.events.iter().all(|event| event.categories.iter().all(|category| category == "other")));
    assert_eq!(trace.slices.len(), 4);
}

#[test]
fn two_layers_do_not_disturb_each_other() {
    let subscriber = tracing_subscriber::registry().with(esatto_tracing::layer()).with(esatto_tracing::layer());
    let trace = record(&subscriber.into(), work);
    let depths: Vec<_> = trace.slices.iter().filter(|slice| name(slice) == "debug").map(|slice| slice.depth).collect();
    assert_eq!(depths, [0, 1]);
    assert!(trace.slices.iter().all(|slice| slice.duration_ns.is_some()));
}
