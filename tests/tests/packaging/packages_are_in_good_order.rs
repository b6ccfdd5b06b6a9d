//! The judges of each kind of package have nothing to say.

use crate::c_library::root;
use crate::debian_packages::{NAMES, folder, path, ui};
use crate::unit::{output, tool};
use esatto_tests::{Harness, Signal, esatto_bin, skip};
use std::path::PathBuf;
use std::process::Command;

fn packaging(name: &str) -> PathBuf {
    root().join("packaging").join(name)
}

#[test]
fn lintian_finds_no_fault() {
    skip(|| {
        let folder = folder()?;
        let mut lintian = tool("lintian", "debian")?;
        lintian.args(["--allow-root", "--fail-on", "error,warning"]);
        // `cargo xtask soak deb` judges the static libraries, whose parts are thousands here.
        let names = NAMES.iter().filter(|name| !name.ends_with("-dev"));
        let said = output(lintian.args(names.map(|name| path(folder, name, "1"))));
        assert_eq!(said, "");
        Ok(())
    });
}

/// dpkg reads the fields, and the bytes hold no name of a builder.
#[test]
fn the_fields_are_those_of_the_description() {
    skip(|| {
        let folder = folder()?;
        for name in NAMES {
            let deb = path(folder, name, "1");
            let field = |field: &str| output(Command::new("dpkg-deb").arg("--field").arg(&deb).arg(field));
            assert_eq!(field("Package").trim(), *name);
            assert!(!field("Depends").contains("${"), "{}", field("Depends"));
            let listing = output(Command::new("dpkg-deb").arg("--contents").arg(&deb));
            assert!(listing.lines().all(|line| line.contains(" root/root ")), "{listing}");
        }
        let depends = output(Command::new("dpkg-deb").arg("--field").arg(path(folder, "esatto", "1")).arg("Depends"));
        assert!(depends.contains("libc6 (>= ") && depends.contains("systemd"), "{depends}");
        Ok(())
    });
}

/// `esatto view` finds all that it needs in the package, and lintian finds no fault.
#[test]
fn the_package_of_the_ui_is_a_copy_of_the_ui() {
    skip(|| {
        let deb = ui()?;
        let harness = Harness::new();
        output(Command::new("dpkg-deb").arg("--extract").arg(&deb).arg(harness.folder()));
        let copyright =
            std::fs::read_to_string(harness.path("usr/share/doc/esatto-ui/copyright")).expect("it is there");
        for licence in ["Apache-2.0", "MIT", "BSD-3-Clause", "ISC", "Zlib"] {
            assert!(copyright.contains(&format!("\nLicense: {licence}\n")), "{licence}: {copyright}");
        }
        let mut command = harness.command(esatto_bin());
        command.args(["view", "--no-open", "--ui", "usr/share/esatto/ui"]).arg(deb);
        let mut view = harness.start("view", &mut command);
        view.wait_for_log("Perfetto's UI v52.");
        view.wait_for_log("Ctrl-C ends it");
        view.signal(Signal::INT);
        view.wait_ok();
        let mut lintian = tool("lintian", "debian")?;
        let said = output(lintian.args(["--allow-root", "--fail-on", "error,warning"]).arg(ui()?));
        assert_eq!(said, "");
        Ok(())
    });
}

#[test]
fn rpm_reads_the_spec() {
    skip(|| {
        let spec = packaging("rpm/esatto.spec");
        output(tool("rpmspec", "packaging")?.arg("--parse").arg(&spec));
        let names = output(tool("rpmspec", "packaging")?.args(["-q", "--qf", "%{NAME} %{VERSION}\n"]).arg(&spec));
        let version = env!("CARGO_PKG_VERSION");
        for name in ["esatto", "libperfetto-c-esatto", "libperfetto-c-esatto-devel"] {
            assert!(names.lines().any(|line| line == format!("{name} {version}")), "{names}");
        }
        let mut rpmlint = tool("rpmlint", "packaging")?;
        let said = output(rpmlint.arg("-r").arg(packaging("rpm/esatto.rpmlintrc")).arg(&spec));
        assert!(said.contains("0 errors, 0 warnings"), "{said}");
        Ok(())
    });
}

#[test]
fn scripts_are_clean() {
    skip(|| {
        let mut shellcheck = tool("shellcheck", "packaging")?;
        let scripts = ["postinst", "prerm", "postrm"].map(|name| packaging(&format!("debian/esatto.{name}")));
        output(shellcheck.args(["--shell", "sh"]).args(scripts));
        output(tool("shellcheck", "packaging")?.arg(packaging("arch/PKGBUILD")));
        // The functions and variables that makepkg wants.
        let check = "set -eu; . \"$1\"; echo \"${pkgname[*]} $pkgver-$pkgrel\"; \
                     declare -F build check package_esatto package_libperfetto-c-esatto";
        let said = output(Command::new("bash").args(["-c", check, "bash"]).arg(packaging("arch/PKGBUILD")));
        let version = env!("CARGO_PKG_VERSION");
        assert!(said.starts_with(&format!("esatto libperfetto-c-esatto {version}-1\nbuild\n")), "{said}");
        let image = std::fs::read_to_string(packaging("container/Containerfile")).expect("it is there");
        assert_eq!(image.matches(&format!("ARG VERSION={version}\n")).count(), 2, "one in each stage");
        Ok(())
    });
}

#[test]
fn man_pages_are_clean() {
    skip(|| {
        let harness = Harness::new();
        let folder = harness.path("man");
        std::fs::create_dir(&folder).expect("a new folder");
        output(Command::new(esatto_bin()).arg("man").arg(&folder));
        let mut pages: Vec<PathBuf> =
            std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
        pages.sort();
        let mut mandoc = tool("mandoc", "packaging")?;
        let said = mandoc.args(["-T", "lint", "-W", "warning"]).args(&pages).output().expect("it runs");
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        // A page has no date, so it is the same whenever it is made. clap's pages have line breaks
        // beside empty lines.
        let is_fault = |line: &&str| !line.contains("missing date") && !line.contains("skipping paragraph macro");
        let faults: Vec<&str> = said.lines().filter(is_fault).collect();
        assert_eq!(faults, [""; 0]);
        Ok(())
    });
}
