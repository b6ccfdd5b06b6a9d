use esatto_protozero_codegen::{Config, Services};

use crate::Folder;

fn refused(body: &str) -> String {
    let folder = Folder::new("bindings-refused");
    let text = format!("syntax = \"proto3\";\npackage x;\nimport \"esatto/options.proto\";\nmessage M {{}}\n{body}");
    std::fs::write(folder.0.join("x.proto"), text).unwrap();
    let config = Config::new().services(Services::Ipc);
    config.compile(&["x.proto"], &[&folder.0]).map(drop).expect_err(body).to_string()
}

#[test]
fn the_error_has_the_position_of_the_method() {
    for (body, message) in [
        (
            "service S {\n  rpc A(M) returns (M);\n  rpc B(stream M) returns (M);\n}",
            "x.proto:7:3: method `x.S.B` takes a stream of requests, which esatto-ipc does not support",
        ),
        (
            "service S {\n  rpc A(M) returns (stream M) { option (esatto.rpc_one_way) = true; }\n}",
            "x.proto:6:3: method `x.S.A` is one-way, so it cannot return a stream",
        ),
        (
            "service S {\n  option (esatto.service_trace_category) = \"a,b\";\n  rpc A(M) returns (M);\n}",
            "x.proto:7:3: method `x.S.A` names a category with a comma or a control character: name one category",
        ),
    ] {
        assert_eq!(refused(body), message);
    }
}

#[test]
fn only_single_plain_values_can_be_recorded() {
    let method = "rpc A(R) returns (M) { option (esatto.rpc_trace_category) = \"c\"; }";
    for field in ["bytes v = 1", "M v = 1", "repeated uint32 v = 1", "map<string, string> v = 1"] {
        let option = "[(esatto.rpc_trace_value) = true]";
        let error = refused(&format!("message R {{\n  {field} {option};\n}}\nservice S {{ {method} }}"));
        let why = "cannot be recorded: rpc_trace_value is for single numbers, enumerations, bool and string";
        assert_eq!(error, format!("x.proto:6:3: field `x.R.v` {why}"), "{field}");
    }
}

#[test]
fn a_field_that_no_call_records_can_also_be_refused() {
    let field = "repeated uint32 v = 1 [(esatto.rpc_trace_value) = true];";
    for rest in [
        // No service, a call that is not traced, and a message inside of the request.
        "",
        "service S { rpc A(R) returns (M); }",
        "message Q { R r = 1; }\nservice S { option (esatto.service_trace_category) = \"c\"; rpc A(Q) returns (M); }",
    ] {
        let error = refused(&format!("message R {{\n  {field}\n}}\n{rest}"));
        assert!(error.starts_with("x.proto:6:3: field `x.R.v` cannot be recorded: "), "{error}");
    }
}

#[test]
fn messages_of_methods_must_be_generated_or_elsewhere() {
    let folder = Folder::new("bindings-external");
    let write = |name: &str, text: &str| std::fs::write(folder.0.join(name), text).unwrap();
    write("other.proto", "syntax = \"proto3\"; package other; message O {}");
    write("x.proto", "syntax = \"proto3\"; import \"other.proto\"; service S { rpc A(other.O) returns (other.O); }");
    let generate = |config: Config| config.compile(&["x.proto"], &[&folder.0]).map(|output| output.bundle().to_owned());
    let config = Config::new().services(Services::Ipc).imports(false);
    let error = generate(config.clone()).unwrap_err().to_string();
    assert!(error.starts_with("`S.A` uses `other.O` of `other.proto`, which is not among the files"), "{error}");
    let code = generate(config.external("other", "::elsewhere")).unwrap();
    assert!(code.contains("type Request = ::elsewhere::O;"), "{code}");
}

#[test]
fn services_alone_can_be_generated() {
    let folder = Folder::new("bindings-alone");
    let text =
        "syntax = \"proto3\"; package p; message M { N n = 1; } message N {} service S { rpc A(M) returns (N); }";
    std::fs::write(folder.0.join("x.proto"), text).unwrap();
    let generate = |config: Config| config.compile(&["x.proto"], &[&folder.0]).map(|output| output.bundle().to_owned());
    let config = Config::new().services(Services::Ipc).messages(false);
    let error = generate(config.clone()).unwrap_err().to_string();
    assert!(error.starts_with("`p.S.A` uses `p.M`"), "{error}");
    let code = generate(config.external("p", "::messages")).unwrap();
    assert!(code.contains("type Reply = ::messages::N;") && !code.contains("NReader"), "{code}");
}
