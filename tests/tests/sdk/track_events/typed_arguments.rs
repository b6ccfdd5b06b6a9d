//! Fields that a user has added to track events, by code generated of a `.proto` file of their own.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use esatto::schema::TrackEventReader;
use esatto_protozero_codegen::{Config, Output};
use esatto_tests::sdk::{Recorder, Trace};
use esatto_tests::tp;

use super::sequences;

/// Checked in, as `generated_code_is_current` says; a program would have its build script write it.
mod shop {
    include!("typed_arguments/shop.rs");
}

use shop::shop::shop_extension::{TrackEventReaderExt as _, TrackEventWriterExt as _};

esatto::categories! { static APP = "app"; }

mod are_in_the_trace {
    use esatto_tests::sdk::Scenario;
    // Without the user's descriptors the trace processor does not know the fields.
    esatto_tests::scenario!(Scenario::new(super::record).check(super::check).tolerating(&["unknown_extension_fields"]));
}

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(esatto::track_events(1024));
    for number in [17, 18] {
        esatto::instant!(APP, "sold", key = number, |event| {
            event.fields().cashier("Ada").order().number(number).items("tea").items("cups");
        });
    }
    recorder.finish(session);
}

fn check(trace: &Trace) {
    let packets = trace.packets();
    let events: Vec<_> = sequences(&packets).into_iter().flatten().filter_map(|p| p.track_event()).collect();
    let orders: Vec<_> = events.iter().filter_map(|event: &TrackEventReader<'_>| event.order()).collect();
    assert_eq!(orders.iter().filter_map(|order| order.number()).collect::<Vec<_>>(), [17, 18]);
    assert_eq!(events[0].cashier(), Some(&b"Ada"[..]));

    // With them in the trace, where a service can put them, it shows each field.
    let mut descriptors = esatto_protozero::HeapBuffer::new();
    descriptors.message().begin(1).begin(72).bytes(1, generated().descriptor_set());
    static TIMES: AtomicU32 = AtomicU32::new(0);
    let name = format!("esatto-typed-arguments-{}-{}", std::process::id(), TIMES.fetch_add(1, Ordering::Relaxed));
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, [descriptors.into_vec(), trace.bytes()].concat()).expect("can be written");
    let args = tp::rows(
        &file,
        "select key, display_value as value from slice join args using (arg_set_id)
        where key like 'order.%' or key = 'cashier' order by slice.id, key",
    );
    std::fs::remove_file(&file).expect("can be removed");
    let args: Vec<_> = args.iter().map(|row| (row.text("key"), row.text("value"))).collect();
    let of =
        |number| [("cashier", "Ada"), ("order.items[0]", "tea"), ("order.items[1]", "cups"), ("order.number", number)];
    assert_eq!(args, [of("17"), of("18")].concat());
}

fn generated() -> Output {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let protos = [here.join("tests/sdk/track_events/typed_arguments"), here.join("../crates/schema/proto")];
    Config::new().external("perfetto.protos", "::esatto::schema").compile(&["shop.proto"], &protos).expect("compiles")
}

/// Set `ESATTO_BLESS` to accept the current output of the generator.
#[test]
fn generated_code_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk/track_events/typed_arguments/shop.rs");
    let output = generated();
    if std::env::var_os("ESATTO_BLESS").is_some() {
        std::fs::write(&path, output.bundle()).expect("can be written");
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == output.bundle(),
        "run with ESATTO_BLESS=1 and look at the diff"
    );
}
