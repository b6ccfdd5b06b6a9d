//! `exclusive_prio`: a session that wants the service for itself ends all others, which get the
//! reason. It admits only a stronger one.

use crate::{config, path, recording, require};
use esatto_tests::{Harness, Implementation, Signal, Skip};

fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
    require()?;
    let harness = Harness::with_perfetto(client);
    let _service = harness.service(service);
    let mut ordinary = recording(&harness, "ordinary", "");
    let config_of = |name: &str, more: &str| config(&harness, name, more);
    let exclusive = config_of("exclusive.cfg", "exclusive_prio: 5");
    let arguments = ["--txt", "-c", &exclusive, "-o", &path(&harness, "exclusive")];
    let mut exclusive = harness.start("exclusive", &mut harness.perfetto(&arguments));
    ordinary.wait();
    assert!(ordinary.log().contains("exclusive"), "{}", ordinary.log());
    harness.wait_for_sessions(1);

    for refused in ["", "exclusive_prio: 5"] {
        let refused = config_of("refused.cfg", refused);
        let (_, log) = harness.run_perfetto(&["--txt", "-c", &refused, "-o", &path(&harness, "refused")]);
        assert!(log.contains("xclusive"), "{log}");
    }
    assert!(exclusive.is_running());
    exclusive.signal(Signal::INT);
    exclusive.wait_ok();
    Ok(())
}
esatto_tests::for_each_client!(scenario);
