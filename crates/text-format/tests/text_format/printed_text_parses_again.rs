use crate::common::{canonical, config};

#[test]
fn printing_and_parsing_are_inverse() {
    let text = "buffers {\n  size_kb: 4\n  fill_policy: DISCARD\n}\nraw: \"\\000\\377\\\"\\\\\\n\u{e4}\"\nf: 0.1\nd: 1e-300\npacked: 1\npacked: 2\n";
    assert_eq!(canonical(text), text);
}

#[test]
fn unknown_fields_become_comments() {
    let bytes = b"\x18\x05\xf8\x3f\x07\xfa\x3f\x01x\xfd\x3f\x01\0\0\0\xf9\x3f\x02\0\0\0\0\0\0\0\x1a\x01y\x0a\x02\x18\x05\x0a\xff";
    let text = esatto_text_format::to_text(&config(), bytes);
    assert_eq!(
        text,
        "duration_ms: 5\n# 1023: 7\n# 1023: \"x\"\n# 1023: 0x00000001\n# 1023: 0x0000000000000002\n# 3: \"y\"\n\
         buffers {\n  # 3: 5\n}\n# 2 malformed bytes\n"
    );
    assert_eq!(esatto_text_format::parse(&config(), &text).expect("is valid"), b"\x18\x05\x0a\x00");
}
