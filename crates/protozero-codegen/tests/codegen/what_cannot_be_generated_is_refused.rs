use esatto_protozero_codegen::{Config, Error};

fn generate(config: Config, proto: &str) -> Result<(), Error> {
    static COUNTER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let n = COUNTER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("esatto-refused-{}-{n}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("x.proto"), format!("syntax = \"proto2\"; package x;\n{proto}")).unwrap();
    let result = config.compile(&["x.proto"], &[&dir]).map(drop);
    std::fs::remove_dir_all(&dir).unwrap();
    result
}

#[test]
fn each_with_a_message_that_names_it() {
    for (config, proto, message) in [
        (Config::new(), "message M { optional group G = 1 {} }", "a group of `x.M` is not supported"),
        (Config::new(), "message M {} message MWriter {} enum m { A = 0; }", "`m` would be generated twice"),
        (Config::new(), "enum Option { A = 0; }", "the name of `x.Option` is not supported"),
        (Config::new().owned(".x.N"), "message M {}", "`.x.N` matches no file and no message"),
        (Config::new(), "message M { optional N n = 1; }", "'N'"),
    ] {
        let error = generate(config, proto).unwrap_err().to_string();
        assert!(error.contains(message), "{proto}: {error}");
    }
}
