use std::sync::Mutex;

use esatto::Interceptor;
use esatto_tests::sdk::{Recorder, Trace};

esatto::categories! {
    static APP = "app";
}

esatto_tests::scenario!(record, check);

static PACKETS: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Keeper;

impl Interceptor for Keeper {
    type ThreadState = ();

    fn setup(_: &[u8]) -> Self {
        Self
    }

    fn packet(&self, _: &mut (), packet: &[u8]) {
        let mut trace = PACKETS.lock().unwrap();
        // `Trace.packet`.
        let mut buffer = esatto_protozero::HeapBuffer::new();
        buffer.message().bytes(1, packet);
        trace.extend(buffer.to_vec());
    }
}

/// The intercepted packets are a trace by themselves.
fn record(recorder: &Recorder) {
    esatto::interceptor::register::<Keeper>("test_interceptor").expect("may be called this");
    let _tracing = recorder.connect(CATEGORIES);
    let mut config = esatto::track_events(1024);
    let source = config.data_sources[0].config.as_mut().expect("is there");
    source.interceptor_config.get_or_insert_default().name = Some("test_interceptor".into());
    let session = recorder.start(config);
    {
        let _outer = esatto::slice!(APP, "outer", number = 7_u32);
        let _inner = esatto::slice!(APP, "inner", text = "long ".repeat(2000));
    }
    std::thread::spawn(|| esatto::instant!(APP, "elsewhere")).join().expect("ends");
    recorder.finish_as("service", session);
    recorder.save("trace", &*PACKETS.lock().unwrap());
}

fn check(trace: &Trace) {
    let [slices] = trace
        .query(["select slice.name as name, depth, utid, length(extract_arg(arg_set_id, 'debug.text')) as text
            from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) order by ts"]);
    let of = |row: usize| (slices[row].text("name"), slices[row].int("depth"));
    assert_eq!([of(0), of(1), of(2)], [("outer", 0), ("inner", 1), ("elsewhere", 0)]);
    assert_eq!(slices[1].int("text"), 10_000);
    assert_ne!(slices[0].int("utid"), slices[2].int("utid"));
    let [none] = trace.other("service").query(["select name from slice"]);
    assert!(none.is_empty());
}
