//! Perfetto's own header, as the official package has it, in a program with files on ours.

use std::path::Path;
use std::process::Command;

use esatto_tests::Skip;

use crate::abi_version::{AbiVersion, succeed};
use crate::project::Project;

/// The struct is in the header of Perfetto, and of v59 only.
const THEIRS: &str = "#include <perfetto_c.h>\nvoid trace(void);\n\
    int main(void) {\n  trace();\n  return sizeof(struct PerfettoPbMsgWriter) == 0;\n}\n";

const OURS: &str = "#include <esatto/trace.h>\nvoid trace(void);\n\
    static struct esatto_category net = ESATTO_CATEGORY(\"net\", \"What goes over the network\");\n\
    void trace(void) {\n  esatto_init(ESATTO_IN_PROCESS);\n  ESATTO_REGISTER(&net);\n\
      ESATTO_INSTANT(&net, \"sent\");\n}\n";

/// Builds and runs the program with the folders of the headers in both orders.
pub(crate) fn work_in_either_order(project: &Project) -> Result<(), Skip> {
    let version = AbiVersion::V59;
    let (theirs, library) = (project.source("perfetto-sdk-sys").join("libperfetto_c"), version.folder());
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let file = |name: &str| Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    for (name, text) in [("theirs.c", THEIRS), ("ours.c", OURS)] {
        std::fs::write(file(name), text).expect("the folder is ours");
    }
    for folders in [[&theirs, &ours], [&ours, &theirs]] {
        let program = file("both-headers");
        let mut gcc = Command::new("gcc");
        gcc.args(["-std=gnu11", "-pthread", "-I"]).arg(folders[0]).arg("-I").arg(folders[1]).arg("-DPERFETTO_C_V59");
        gcc.arg(file("theirs.c")).arg(file("ours.c")).arg("-o").arg(&program).arg("-L").arg(&library);
        succeed(gcc.arg(format!("-Wl,--disable-new-dtags,-rpath,{}", library.display())).arg("-lperfetto_c"));
        succeed(Command::new(program).env_remove("LD_LIBRARY_PATH"));
    }
    Ok(())
}
