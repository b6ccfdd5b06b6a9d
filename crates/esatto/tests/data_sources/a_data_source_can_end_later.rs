use std::sync::Mutex;

use esatto::{DataSource, Setup, Source, Stop};

use super::{config, start, texts, wait_until};

struct Late;

static STOPS: Mutex<Vec<Stop>> = Mutex::new(Vec::new());

impl DataSource for Late {
    type Config = ();
    type ThreadState = ();
    type IncrementalState = ();

    fn setup(_: &Setup<'_, ()>) -> Self {
        Self
    }

    fn stop(&self, stop: Stop) {
        STOPS.lock().unwrap().push(stop);
    }
}

static SOURCE: Source<Late> = Source::new("test.late");

fn write(text: &str) {
    SOURCE.trace(|context| {
        context.packet(|packet| {
            packet.for_testing().str(text);
        });
        context.flush();
    });
}

#[test]
fn case_12_packets_written_before_the_end_are_in_the_trace() {
    SOURCE.register().expect("registers");
    let session = start(config("test.late", &[1]));
    write("before");
    let writer = std::thread::spawn(|| {
        wait_until("the stop", || !STOPS.lock().unwrap().is_empty());
        assert!(SOURCE.is_enabled(), "it records until it has ended");
        write("between");
        let stop = STOPS.lock().unwrap().pop().expect("was there");
        stop.complete();
    });
    let trace = session.stop().expect("stops");
    writer.join().expect("does not panic");
    write("after");
    assert_eq!(texts(&trace).iter().filter(|text| *text == "before").count(), 1);
    assert_eq!(texts(&trace).iter().filter(|text| *text == "between").count(), 1);
    assert_eq!(texts(&trace).len(), 2);
}
