use std::sync::Mutex;

use esatto::schema::TestConfig;
use esatto::{DataSource, Field, Setup, Source};

use super::{config, start, texts, wait_until};

struct Numbered(u32);

impl DataSource for Numbered {
    type Config = Field<TestConfig, 1001>;
    type ThreadState = u32;
    type IncrementalState = ();

    fn setup(setup: &Setup<'_, Self::Config>) -> Self {
        Self(setup.config().message_count.unwrap_or(0))
    }
}

static EIGHT: Source<Numbered> = Source::new("test.eight");

#[test]
fn case_9_eight_instances_record_and_the_ninth_is_refused() {
    EIGHT.register().expect("registers");
    let session = start(config("test.eight", &[10, 11, 12, 13, 14, 15, 16, 17, 18]));
    assert_eq!(EIGHT.refused(), 1);
    for round in 1..=2 {
        let mut seen = Vec::new();
        EIGHT.trace(|context| {
            let number = context.source().expect("lives").0;
            *context.thread_state() += 1;
            assert_eq!(*context.thread_state(), round, "the state of another instance");
            context.packet(|packet| {
                packet.for_testing().str(format!("{number}"));
            });
            seen.push((context.instance(), number));
        });
        assert_eq!(seen, (0..8).map(|i| (i, 10 + i as u32)).collect::<Vec<_>>());
    }
    // The ninth records nothing, but its end is answered: otherwise the service would wait for ten
    // minutes.
    let trace = session.stop().expect("stops");
    let mut texts = texts(&trace);
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts, ["10", "11", "12", "13", "14", "15", "16", "17"]);
}

static ONE: Source<Numbered> = Source::new("test.one").single_instance();

#[test]
fn case_10_a_second_instance_can_be_refused() {
    ONE.register().expect("registers");
    let first = start(config("test.one", &[1]));
    let second = start(config("test.one", &[2]));
    let mut numbers = Vec::new();
    let mut write = || {
        ONE.trace(|context| {
            numbers.push(context.source().expect("lives").0);
            context.packet(|packet| {
                packet.for_testing().str("x");
            });
        });
    };
    write();
    assert_eq!(texts(&second.stop().expect("stops")).len(), 0);
    write();
    assert_eq!(texts(&first.stop().expect("stops")), ["x", "x"]);
    assert_eq!(numbers, [1, 1]);
    assert_eq!(ONE.refused(), 1);
}

static TWINS: [Source<Numbered>; 2] = [Source::new("test.twins"), Source::new("test.twins")];

#[test]
fn data_sources_may_share_a_name() {
    TWINS.iter().for_each(|twin| twin.register().expect("registers"));
    // The service makes an instance for each registration.
    let session = start(config("test.twins", &[5]));
    for twin in &TWINS {
        assert_eq!(twin.instances().map(|(_, instance)| instance.0).collect::<Vec<_>>(), [5]);
    }
    session.stop().expect("stops");
}

static OUTER: Source<Numbered> = Source::new("test.outer");
static INNER: Source<Numbered> = Source::new("test.inner");
static SEEN: Mutex<Vec<&str>> = Mutex::new(Vec::new());

esatto::categories! {
    static INSIDE = "test.inside";
}

#[test]
fn case_11_a_trace_point_inside_of_another_is_dropped() {
    OUTER.register().expect("registers");
    INNER.register().expect("registers");
    let mut both = config("test.outer", &[1]);
    both.data_sources.extend(config("test.inner", &[1]).data_sources);
    both.data_sources.extend(esatto::track_events(64).data_sources);
    let session = start(both);
    wait_until("the category is on", || INSIDE.is_enabled());
    let see = |what| SEEN.lock().unwrap().push(what);
    OUTER.trace(|_| {
        see("outer");
        OUTER.trace(|_| see("itself"));
        INNER.trace(|_| see("inner"));
        esatto::instant!(INSIDE, "event", |event| {
            see("event");
            event.annotate("a", 1);
        });
    });
    esatto::instant!(INSIDE, "event", |event| {
        INNER.trace(|_| see("inner in an event"));
        event.annotate("a", 1);
    });
    INNER.trace(|_| see("afterwards"));
    session.stop().expect("stops");
    assert_eq!(*SEEN.lock().unwrap(), ["outer", "afterwards"]);
}
