//! Files that are refused, each with the place and the reason.

use super::refused;
use crate::compile::compile;

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(refused(text), expected);
}

#[test]
fn syntax_errors_say_what_was_expected() {
    check("type A = struct { a bool }", "t.fidl:2:26: expected `;` after the member, found `}`");
    check("type A struct {};", "t.fidl:2:8: expected `=` after the name of the type, found `struct`");
    check("const A = 1;", "t.fidl:2:9: expected a type, found `=`");
    check(
        "typo A = 1;",
        "t.fidl:2:1: expected `const`, `type`, `alias`, `protocol`, `service` or `resource_definition`, found `typo`",
    );
    check("type A = table { a bool; };", "t.fidl:2:18: expected the ordinal of a member, or `}`, found `a`");
    check("type A = table { 0: a bool; };", "t.fidl:2:18: `0` is no ordinal: use 1, 2, …");
    check("protocol P { M(", "t.fidl:2:16: expected a type, found the end of the file");
    let deep = format!("type A = {}bool{};", "vector<".repeat(100), ">".repeat(100));
    assert!(refused(&deep).ends_with("more than 64 nested types"), "{}", refused(&deep));
}

#[test]
fn unknown_names_get_advice() {
    check("type A = struct { b Bool; };", "t.fidl:2:21: unknown type `Bool`");
    check("type Abc = struct { b abc; };", "t.fidl:2:23: unknown type `abc`; did you mean `Abc`?");
    check(
        "type A = struct { b vector<zx.Rights>; };",
        "t.fidl:2:28: unknown type `zx.Rights`; the file lacks `using zx;`",
    );
    check("using other;", "t.fidl:2:7: library `other` is not among the files; known are `test`, `zx`");
    check(
        "type A = struct { b P; }; protocol P {};",
        "t.fidl:2:21: `P` is a protocol: use `client_end:P` or `server_end:P`",
    );
    check("using zx; type A = resource struct { b zx.Handle:FOO; };", "t.fidl:2:50: `FOO` is no member of `ObjType`");
}

#[test]
fn constants_must_fit() {
    check("const A uint8 = 256;", "t.fidl:2:17: `256` is no uint8: it holds 0 to 255");
    check("const A string:2 = \"abc\";", "t.fidl:2:20: the string has 3 bytes, more than its type allows");
    check("const A bool = MAX;", "t.fidl:2:16: unknown constant `MAX`");
    check("const A bool = 1;", "t.fidl:2:16: expected `true` or `false`");
    check(
        "type E = enum { M = 1; }; alias F = E; const A E = F.M;",
        "t.fidl:2:52: `F` is an alias, which has no members: name the type that it stands for",
    );
    check("const A uint8 = B; const B uint8 = A;", "t.fidl:2:7: the value of `test/A` depends on itself");
    check("const A uint8 = B; const B uint32 = 300;", "t.fidl:2:17: `B` is not a value of uint8");
    check("type E = enum { X = 1; }; const A E = E.Y;", "t.fidl:2:39: `test/E` has no member `Y`");
    check("type E = enum { X = 1; Y = 1; };", "t.fidl:2:24: `Y` has the value of `X`");
    check("type B = bits { X = 3; };", "t.fidl:2:17: `X` is not one bit");
    check("type B = bits : int8 { X = 1; };", "t.fidl:2:17: bits have an unsigned integer type");
    check("type A = struct { a array<bool, 0>; };", "t.fidl:2:33: expected a size from 1");
}

#[test]
fn layouts_obey_their_rules() {
    check("type A = struct { a A; };", "t.fidl:2:6: `test/A` contains itself; put one of the structs in a `box<…>`");
    check("type A = union { 1: a bool; 1: b bool; };", "t.fidl:2:29: the ordinal 1 is there twice in `test/A`");
    check("type A = struct { a bool; a bool; };", "t.fidl:2:27: `a` is there twice in `test/A`");
    check("type A = strict union {};", "t.fidl:2:10: `test/A` is strict and so needs a member");
    check(
        "type A = strict struct {};",
        "t.fidl:2:10: a struct is strict, a table is flexible: neither can be declared `strict`",
    );
    check("type A = resource enum { X = 1; };", "t.fidl:2:10: only a struct, table or union can be a `resource`");
    check("type A = table { 1: a string:optional; };", "t.fidl:2:23: a member of a table cannot be optional");
    check("type A = struct { a string:<5, optional, optional>; };", "t.fidl:2:42: the type is optional already");
    check("type A = struct { a bool:optional; };", "t.fidl:2:26: a number cannot be optional");
    check("type A = struct { a box<string>; };", "t.fidl:2:25: only a struct can be in a box");
    check(
        "using zx; type A = struct { a vector<zx.Handle>; };",
        "t.fidl:2:29: this member can hold handles, so `A` must be a `resource`",
    );
    check(
        "type A = struct { b struct {}; }; type C = struct { b table {}; };",
        "t.fidl:2:55: a second declaration would be called `test/B`: rename the member, or use `@generated_name(\"…\")`",
    );
    check("type A = struct {}; type A = struct {};", "t.fidl:2:26: `A` is declared twice in library `test`");
}

#[test]
fn protocols_obey_their_rules() {
    check("closed protocol P { M(); };", "t.fidl:2:21: `M` must be `strict`, because the protocol is `closed`");
    check("ajar protocol P { M() -> (); };", "t.fidl:2:19: `M` must be `strict`, because the protocol is `ajar`");
    check("protocol P { compose P; };", "t.fidl:2:10: the protocol `test/P` composes itself");
    check(
        "closed protocol P { compose Q; }; open protocol Q {};",
        "t.fidl:2:29: the protocol is `closed` and cannot compose one that is `open`",
    );
    check("protocol P { M(bool); };", "t.fidl:2:16: the parameters are a struct, a table or a union");
    check("protocol P { M(); M(); };", "t.fidl:2:19: `M` is there twice in `test/P`");
    check(
        "protocol P { M(); @selector(\"M\") N(); };",
        "t.fidl:2:10: `M` and `N` have the same ordinal: use `@selector`",
    );
    check("protocol P { @trace M(); };", "t.fidl:2:14: expected `@trace(\"CATEGORY\")`");
    check(
        "protocol P { @trace(\"a,b\") M(); };",
        "t.fidl:2:14: a category is one name, without commas and control characters",
    );
    check(
        "@transport(\"Driver\") protocol P {};",
        "t.fidl:2:1: the transport `Driver` is not supported; known is `Channel`",
    );
}

#[test]
fn names_that_generated_code_cannot_tell_apart_are_refused() {
    let rename = "in generated code: rename one";
    for (text, column, second, first, at, of, both) in [
        ("protocol P { strict M(); strict m(); };", 33, "m", "M", 21, "`test/P`", "m"),
        ("protocol P { A1(); A_1(); };", 20, "A_1", "A1", 14, "`test/P`", "A1"),
        ("type A = struct { aB bool; a_b bool; };", 28, "a_b", "aB", 19, "`test/A`", "a_b"),
        ("type A = table { 1: aB bool; 2: AB bool; 3: a_b bool; };", 45, "a_b", "aB", 21, "`test/A`", "a_b"),
        ("type A = bits { X = 1; x = 2; };", 24, "x", "X", 17, "`test/A`", "x"),
        ("type A = enum { X = 1; x = 2; };", 24, "x", "X", 17, "`test/A`", "x"),
        ("type A = strict union { 1: a1 bool; 2: a_1 bool; };", 40, "a_1", "a1", 28, "`test/A`", "A1"),
        ("const FOO bool = true; type Foo = struct {};", 29, "Foo", "FOO", 7, "library `test`", "foo"),
    ] {
        let expected = format!(
            "t.fidl:2:{column}: `{second}` and `{first}` (t.fidl:2:{at}) of {of} would both be `{both}` {rename}"
        );
        check(text, &expected);
    }
    check(
        "protocol P { M(); }; protocol Q { compose P; m(); };",
        "t.fidl:2:31: `M` and `m`, own or composed methods of `test/Q`, would both be `m` in generated code: rename one",
    );
}

#[test]
fn versions_are_checked() {
    check(
        "@available(added=0) const A bool = true;",
        "t.fidl:2:18: expected a version: a number from 1, `NEXT` or `HEAD`",
    );
    check(
        "@available(add=1) const A bool = true;",
        "t.fidl:2:16: unknown argument `add`; known are added, deprecated, removed, replaced, renamed, note, legacy and platform",
    );
}

#[test]
fn nothing_is_no_library() {
    assert_eq!(compile([], &[]).unwrap_err().to_string(), "no .fidl file and no file of Fuchsia's compiler is named");
    assert_eq!(
        compile([("a.fidl", "")], &[]).unwrap_err().to_string(),
        "a.fidl:1:1: expected `library NAME;`, found the end of the file"
    );
    let error = compile([("a.fidl", "library A;")], &[]).unwrap_err().to_string();
    assert_eq!(
        error,
        "a.fidl:1:9: `A` is no part of a library name: use a letter, then letters and digits, all lower-case"
    );
}

#[test]
fn protocols_that_compose_each_other_twice_are_read_at_once() {
    let mut text = "library t;\nprotocol P0 {};\nprotocol Q0 {};\n".to_owned();
    for level in 1..64 {
        for name in ["P", "Q"] {
            text +=
                &format!("protocol {name}{level} {{ compose P{0}; compose Q{0}; M{name}{level}(); }};\n", level - 1);
        }
    }
    assert!(compile([("t.fidl", text.as_str())], &[]).is_ok());
}
