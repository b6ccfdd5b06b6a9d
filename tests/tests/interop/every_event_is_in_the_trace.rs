//! Two applications emit at once; every event is in the trace, in order per thread.

use esatto_tests::workload::{self, CONFIG, CONFIG_WITHOUT_DEBUG, Expected, Workload};
use esatto_tests::{Lab, Skip, Trio};

const LARGE: Workload = Workload { threads: 3, rounds: 400, pause_us: 100 };
const SMALL: Workload = Workload { threads: 1, rounds: 30, pause_us: 1000 };

fn record(trio: Trio, config: &str, details: bool) {
    let lab = Lab::new();
    let _service = lab.service(trio.service);
    let mut large = lab.application(trio.producer, LARGE);
    let mut small = lab.application(trio.producer, SMALL);
    let mut recording = lab.record(trio.consumer, "trace", config);
    large.wait_ok();
    small.wait_ok();
    let trace = lab.stop(&mut recording);
    workload::assert_whole(
        &trace,
        &[
            Expected { pid: large.pid(), workload: LARGE, details },
            Expected { pid: small.pid(), workload: SMALL, details },
        ],
    );
}

mod with_all_categories {
    use super::*;

    fn scenario(trio: Trio) -> Result<(), Skip> {
        record(trio, CONFIG, true);
        Ok(())
    }
    esatto_tests::matrix!(scenario);
}

mod without_category_debug {
    use super::*;

    fn scenario(trio: Trio) -> Result<(), Skip> {
        record(trio, CONFIG_WITHOUT_DEBUG, false);
        Ok(())
    }
    esatto_tests::matrix!(scenario);
}
