use esatto_protozero_codegen::{Config, Services};

use esatto_ipc::service::{Rpc, TraceSite};

use crate::here;
use crate::rpc_names::names::{handler, keywords};

/// The schema of the bindings.
const NAMES: [&str; 3] = ["handler.proto", "keywords.proto", "messages.proto"];

/// Returns the code of the bindings, in one text.
fn code(config: Config) -> String {
    config.compile(&NAMES, &[here().join("rpc")]).unwrap().bundle().to_owned()
}

/// Run with `ESATTO_BLESS=1` to accept the current output of the generator.
#[test]
fn the_bindings_are_up_to_date_and_formatted() {
    let output = Config::new().services(Services::Ipc).compile(&NAMES, &[here().join("rpc")]).unwrap();
    let files: Vec<_> = output.files().iter().map(|(name, code)| (here().join("rpc").join(name), code)).collect();
    for (path, code) in &files {
        if std::env::var_os("ESATTO_BLESS").is_some() {
            std::fs::write(path, code).unwrap();
        }
        let present = std::fs::read_to_string(path).unwrap();
        assert!(present == **code, "run with ESATTO_BLESS=1 and look at the diff of {}", path.display());
    }
    let paths: Vec<_> = files.into_iter().map(|(path, _)| path).collect();
    crate::generated_code_is_formatted::check(&paths);
}

/// The tests of `esatto-ipc` use them over sockets.
#[test]
fn the_bindings_of_the_sample_are_up_to_date() {
    let folder = here().join("../../../ipc/tests/rpc/sample");
    let output = Config::new().services(Services::Ipc).compile(&["store.proto"], &[&folder]).unwrap();
    let path = folder.join("messages.rs");
    if std::env::var_os("ESATTO_BLESS").is_some() {
        std::fs::write(&path, output.bundle()).unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap() == output.bundle(), "run with ESATTO_BLESS=1");
}

#[test]
fn descriptions_have_the_names_of_the_schema() {
    let service = &handler::SERVICE;
    assert_eq!(service.name, "Handler");
    let names: Vec<_> = service.methods.iter().map(|method| method.name).collect();
    assert_eq!(names, ["New", "Clone", "Into", "Result", "Result_", "result"]);
    let names: Vec<_> = keywords::SERVICE.methods.iter().map(|method| method.name).collect();
    assert_eq!(names, ["Type", "self", "Self", "rpc", "Dispatch", "AMethodWhoseDescriptionIsBroken"]);
    let categories = service.methods.iter().map(|method| method.trace.map(TraceSite::category));
    let [names, other] = [Some("names"), Some("other")];
    assert!(categories.eq([names, names, None, names, other, names]));
    assert_eq!(<handler::method::Result__ as Rpc>::METHOD, 5);
    let recorded: Vec<_> = service.methods[0].trace.unwrap().request().iter().map(|value| value.name()).collect();
    assert_eq!(recorded, ["key", "delta", "level"]);
}

#[test]
fn without_tracing_no_category_is_in_the_code() {
    let config = || Config::new().services(Services::Ipc);
    assert!(code(config()).contains("TraceSite"));
    let plain = code(config().rpc_trace(false));
    assert!(!plain.contains("TraceSite") && !plain.contains("Some(&trace") && plain.contains("Kind::OneWay"));
}

#[test]
fn each_side_can_depend_on_a_feature() {
    let config = Config::new().services(Services::Ipc).client_feature("call").server_feature("serve");
    let code = code(config);
    // Four services, each with two items for clients and nine for servers.
    assert_eq!(code.matches("#[cfg(feature = \"call\")]\n").count(), 4 * 2);
    assert_eq!(code.matches("#[cfg(feature = \"serve\")]\n").count(), 4 * 9);
}

#[test]
fn one_side_can_be_left_out() {
    let code = |services| code(Config::new().services(services));
    let client = code(Services::IpcClient);
    assert!(client.contains("pub struct Client {") && !client.contains("rpc::server::"));
    let server = code(Services::IpcServer);
    assert!(server.contains("pub trait Server:") && server.contains("pub trait Handler {"));
    assert!(!server.contains("rpc::Channel"));
}
