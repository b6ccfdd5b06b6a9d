//! Buffers are touched as they fill, so a config may ask for more than there is. The service lets
//! in only what fits into the machine beside everything else.

use esatto_tests::bystander;
use esatto_tests::raw::{self, RawConsumer};
use esatto_tests::wire::{self, Proto};

#[test]
fn buffers_beyond_the_memory_of_the_machine_are_refused() {
    bystander::watch(|harness, _, _| {
        // Half a terabyte.
        let config = (0..128).fold(Proto::new(), |config, _| config.message(1, &Proto::new().int(1, 4_000_000)));
        let mut consumer = RawConsumer::connect(harness);
        consumer.enable(&config);
        let ended = consumer.ended();
        let error = wire::last(&ended.body, 3).expect("it is refused");
        let error = String::from_utf8_lossy(error);
        assert!(error.contains("the buffers have 512000000 KiB together"), "{error}");
        assert!(error.contains("KiB are left for uid"), "{error}");
        let mut consumer = RawConsumer::connect(harness);
        consumer.enable(&raw::config(64, &[]));
        consumer.disable();
    });
}
