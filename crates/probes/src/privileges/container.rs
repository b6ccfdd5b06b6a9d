//! Parts of the machine that a container hides from the data sources.

use std::fs;
use std::path::Path;

/// Numbers of the first namespaces of the machine, which the kernel fixes (`PROC_PID_INIT_INO`,
/// `PROC_USER_INIT_INO`).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";
const FIRST_USER_NAMESPACE: &str = "user:[4026531837]";

/// Returns what the container of this process hides, one line each; nothing outside of containers.
#[must_use]
pub fn hidden_by_container() -> Vec<&'static str> {
    hidden_below(Path::new("/"))
}

pub(super) fn hidden_below(root: &Path) -> Vec<&'static str> {
    let mut hidden = Vec::new();
    if is_namespace_of_its_own(root, "pid", FIRST_PID_NAMESPACE) {
        hidden.push(
            "processes outside of it: kernel events name their threads by numbers that have no process in the trace; \
             start the container with the machine's processes (docker run --pid=host)",
        );
    }
    if is_namespace_of_its_own(root, "user", FIRST_USER_NAMESPACE) {
        hidden.push("the rights of its root: they do not reach the kernel's events; start it without a user namespace");
    }
    if has_own_clocks(root) {
        hidden.push(
            "the clocks of the machine: kernel events lie apart from those of programs, so readers leave them out; \
             start it without a time namespace, or record outside of it",
        );
    }
    hidden
}

/// Returns whether the clocks of this process are set apart from those of the kernel.
fn has_own_clocks(root: &Path) -> bool {
    let offsets = fs::read_to_string(root.join("proc/self/timens_offsets")).unwrap_or_default();
    offsets.lines().any(|clock| clock.split_whitespace().skip(1).any(|number| number != "0"))
}

/// Returns whether this process is in a container, as far as it can see.
pub(super) fn is_container(root: &Path) -> bool {
    !hidden_below(root).is_empty()
        || [".dockerenv", "run/.containerenv"].into_iter().any(|file| root.join(file).exists())
}

fn is_namespace_of_its_own(root: &Path, kind: &str, first: &str) -> bool {
    fs::read_link(root.join("proc/self/ns").join(kind)).is_ok_and(|link| link != Path::new(first))
}
