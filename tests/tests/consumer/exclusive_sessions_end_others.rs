//! `exclusive_prio`: a session that wants the service for itself ends the others, which are told why; and admits none but a
//! stronger one.

use crate::{config, path, recording, require};
use esatto_tests::{Lab, Side, Signal, Skip};

fn scenario(service: Side) -> Result<(), Skip> {
    require()?;
    let lab = Lab::new();
    let _service = lab.service(service);
    let mut ordinary = recording(&lab, "ordinary", "");
    let config_of = |name: &str, more: &str| config(&lab, name, more);
    let exclusive = config_of("exclusive.cfg", "exclusive_prio: 5");
    let arguments = ["--txt", "-c", &exclusive, "-o", &path(&lab, "exclusive")];
    let mut exclusive = lab.start("exclusive", &mut lab.perfetto(&arguments));
    ordinary.wait();
    assert!(ordinary.log().contains("exclusive"), "{}", ordinary.log());
    lab.wait_for_sessions(1);

    for refused in ["", "exclusive_prio: 5"] {
        let refused = config_of("refused.cfg", refused);
        let (_, log) = lab.run_perfetto(&["--txt", "-c", &refused, "-o", &path(&lab, "refused")]);
        assert!(log.contains("xclusive"), "{log}");
    }
    assert!(exclusive.is_running());
    exclusive.signal(Signal::INT);
    exclusive.wait_ok();
    Ok(())
}
esatto_tests::for_each_service!(scenario);
