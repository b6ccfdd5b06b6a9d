use esatto::schema::{DataSourceDescriptor, TestConfig};
use esatto::{DataSource, Field, Setup, Source, SourceConfig};

use super::{config, start};

struct Panics;

impl DataSource for Panics {
    type Config = ();
    type ThreadState = ();
    type IncrementalState = ();

    fn setup(_: &Setup<'_, ()>) -> Self {
        panic!("as a test wants it")
    }
}

static PANICS: Source<Panics> = Source::new("test.panics");

#[test]
fn a_panic_in_setup_refuses_the_instance() {
    PANICS.register().expect("registers");
    let session = start(config("test.panics", &[1]));
    PANICS.trace(|_| panic!("there is no instance"));
    session.stop().expect("stops at once");
    assert_eq!(PANICS.refused(), 1);
}

struct Picky;

/// Accepts even numbers.
struct Even;

impl SourceConfig for Even {
    fn read(config: &[u8]) -> Option<Self> {
        let test = Field::<TestConfig, 1001>::read(config)?;
        (test.message_count? % 2 == 0).then_some(Self)
    }
}

impl DataSource for Picky {
    type Config = Even;
    type ThreadState = ();
    type IncrementalState = ();

    fn setup(_: &Setup<'_, Even>) -> Self {
        Self
    }

    fn start(&self) {
        panic!("which is nobody else's problem")
    }
}

static PICKY: Source<Picky> = Source::new("test.picky");

#[test]
fn a_config_that_does_not_parse_refuses_the_instance() {
    PICKY.register().expect("registers");
    let session = start(config("test.picky", &[1, 2, 3]));
    let mut instances = 0;
    PICKY.trace(|_| instances += 1);
    session.stop().expect("stops at once");
    assert_eq!((instances, PICKY.refused()), (1, 2));
}

#[test]
fn an_unknown_data_source_does_not_delay_the_session() {
    start(config("test.nobody has this", &[1])).stop().expect("stops at once");
}

static NAMED: Source<Picky> = Source::new("test.named");

#[test]
fn a_descriptor_keeps_its_name() {
    let other = DataSourceDescriptor { name: Some("test.other".into()), ..Default::default() };
    let error = NAMED.register_with(&other).expect_err("has another name");
    assert_eq!(error.to_string(), "the data source `test.named` has a descriptor with another name");
    let error = NAMED.update_descriptor(&DataSourceDescriptor::default()).expect_err("is not registered");
    assert_eq!(error.to_string(), "the data source `test.named` is not registered");
    NAMED.register().expect("registers");
    NAMED.update_descriptor(&DataSourceDescriptor::default()).expect("is registered");
    NAMED.update_descriptor(&other).expect_err("has another name");
}
