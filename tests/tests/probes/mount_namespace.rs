//! Probes that see other mounts than the rest of the machine.

use esatto_tests::{Harness, Program, Skip, esatto_bin, wait_until};

/// Starts `esatto probes` in a mount namespace of its own, and waits until the service has its data
/// sources. `enter` is a script for sh that ends with `exec "$0" probes`, perhaps by another
/// program.
pub(crate) fn probes_in_namespace(harness: &Harness, enter: &str) -> Result<Program, Skip> {
    let mut command = harness.command("unshare");
    let mut probes = harness.start("probes", command.args(["--mount", "sh", "-e", "-c", enter]).arg(esatto_bin()));
    wait_until("the probes are connected or say why not", || {
        let log = probes.log();
        (log.contains("Connected to the tracing service") || !probes.is_running()).then_some(())
    });
    let log = probes.log();
    if log.contains("unshare failed") || log.contains("mount:") {
        return Err(Skip(format!("no mount namespaces: {}", log.trim())));
    }
    harness.wait_for_data_source("linux.process_stats");
    Ok(probes)
}
