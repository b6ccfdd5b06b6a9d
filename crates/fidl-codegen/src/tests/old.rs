//! Files in the syntax from before 2021.

use super::{find, libraries, refused, size};
use crate::compile::compile;
use crate::layout::Layouts;
use crate::model::{DeclarationKind, Library, MethodKind, Name, Openness, Primitive, Response, Side, Type};

const OLD: &str = "
/// A library.
library test.old;

using zx;

using Hash = array<uint8>:SIZE;
const uint8 SIZE = 4;
const string:5 WORD = \"hello\";

enum Color : uint8 { RED = 1; };
flexible enum Level { LOW = 1; };
bits Mode : uint16 { A = 0b1; B = 0x2; };

/// A point.
struct Point { int32 x; int64 y = -1; };
struct Line { Point from; Point? to; Hash hash; vector<Point>:SIZE? more; };
table Options { 1: string:9 name; 2: reserved; 3: zx.handle:VMO memory; };
union Shape { 1: Point point; 2: Line line; };
xunion Loose { 1: bool a; };
flexible union Looser { 1: bool a; };
struct Ends { Device device; Device? maybe; request<Device> theirs; handle any; handle<socket>? plain; };
struct Holder { vector<Ends> ends; Shape? shape; };

[Discoverable]
protocol Base { Ping() -> (); };

protocol Device {
    compose Base;
    [Deprecated = \"use Fill\", Transitional]
    Tell(uint32 a, Color color);
    Divide(int32 a, int32 b) -> (int32 quotient, int32 rest) error zx.status;
    [Trace = \"io\"]
    -> OnChange(Shape? shape);
};

service Machine { Device main; };
";

/// The same in today's syntax.
const TODAY: &str = "
/// A library.
library test.old;

using zx;

alias Hash = array<uint8, SIZE>;
const SIZE uint8 = 4;
const WORD string:5 = \"hello\";

type Color = strict enum : uint8 { RED = 1; };
type Level = flexible enum { LOW = 1; };
type Mode = strict bits : uint16 { A = 0b1; B = 0x2; };

/// A point.
type Point = struct { x int32; y int64 = -1; };
type Line = struct { from Point; to box<Point>; hash Hash; more vector<Point>:<SIZE, optional>; };
type Options = resource table { 1: name string:9; 3: memory zx.Handle:VMO; };
type Shape = strict union { 1: point Point; 2: line Line; };
type Loose = flexible union { 1: a bool; };
type Looser = flexible union { 1: a bool; };
type Ends = resource struct {
    device client_end:Device;
    maybe client_end:<Device, optional>;
    theirs server_end:Device;
    any zx.Handle;
    plain zx.Handle:<SOCKET, optional>;
};
type Holder = resource struct { ends vector<Ends>; shape Shape:optional; };

@discoverable
closed protocol Base { strict Ping() -> (); };

closed protocol Device {
    compose Base;
    @deprecated(\"use Fill\")
    strict Tell(struct { a uint32; color Color; });
    strict Divide(struct { a int32; b int32; }) -> (struct { quotient int32; rest int32; }) error zx.Status;
    @trace(\"io\")
    strict -> OnChange(struct { shape Shape:optional; });
};

service Machine { main client_end:Device; };
";

/// Returns the code of the library of this file.
fn code(text: &str) -> String {
    let config = crate::Config::new().text("test.fidl", text).library("test.old");
    config.generate().unwrap()
}

#[test]
fn both_syntaxes_mean_the_same() {
    assert_eq!(code(OLD), code(TODAY));
}

#[test]
fn an_old_file_is_read_as_it_was_meant() {
    let libraries = libraries(OLD);
    assert_eq!(size(&libraries, "test.old/Line"), (48, 8));
    let is_resource = |name: &str| {
        let type_ = Type::Declared(Name::new("test.old", name));
        Layouts::new(&libraries).is_resource(&type_)
    };
    assert!(is_resource("Options") && is_resource("Ends") && is_resource("Holder"));
    assert!(!is_resource("Line") && !is_resource("Shape"));
    let strictness = |name: &str| match &find(&libraries, &format!("test.old/{name}")).kind {
        DeclarationKind::Enum(numbers) | DeclarationKind::Bits(numbers) => numbers.is_strict,
        DeclarationKind::Union(members) => members.is_strict,
        _ => panic!("{name} has no strictness"),
    };
    let strict = ["Color", "Level", "Mode", "Shape", "Loose", "Looser"].map(strictness);
    assert_eq!(strict, [true, false, true, true, false, false]);

    let DeclarationKind::Protocol(device) = &find(&libraries, "test.old/Device").kind else { panic!() };
    assert_eq!(device.openness, Openness::Closed);
    let names: Vec<_> = device.methods.iter().map(|method| method.name.as_str()).collect();
    assert_eq!(names, ["Divide", "OnChange", "Ping", "Tell"]);
    let MethodKind::TwoWay { response: Response::Result { error, .. }, .. } = &device.methods[0].kind else { panic!() };
    assert_eq!(*error, Some(Type::Primitive(Primitive::Int32)));
    assert_eq!(device.methods[0].ordinal, crate::ordinal::ordinal("test.old/Device.Divide"));
    assert_eq!(device.methods[1].trace.as_deref(), Some("io"));
    assert_eq!(device.methods[3].notes.deprecated.as_deref(), Some("use Fill"));
    let DeclarationKind::Struct(ends) = &find(&libraries, "test.old/Ends").kind else { panic!() };
    let end = |side, is_optional| Type::Endpoint { side, protocol: Name::new("test.old", "Device"), is_optional };
    assert_eq!(ends.members[1].type_, end(Side::Client, true));
    assert_eq!(ends.members[2].type_, end(Side::Server, false));
    assert_eq!(ends.members[4].type_, Type::Handle { object: Some("socket".to_owned()), is_optional: true });
}

#[test]
fn the_files_of_a_program_can_have_different_syntaxes() {
    let libraries = compile(
        [
            ("a.fidl", "library a; using zx; struct A { zx.handle:VMO vmo; }; protocol P { M(A a); };"),
            (
                "b.fidl",
                "library b; using a; using zx; type B = resource struct { a a.A; p client_end:a.P; s zx.Status; };",
            ),
        ],
        &[],
    );
    assert_eq!(size(&libraries.unwrap(), "b/B"), (12, 4));
    let error = compile(
        [
            ("a.fidl", "library a; using zx; struct A { zx.handle:VMO vmo; };"),
            ("b.fidl", "library b; using a; type B = struct { a a.A; };"),
        ],
        &[],
    );
    let message = "b.fidl:1:39: this member can hold handles, so `B` must be a `resource`";
    assert_eq!(error.map(|_: Vec<Library>| ()).unwrap_err().to_string(), message);
}

#[test]
fn mistakes_in_old_files_have_their_place() {
    for (text, expected) in [
        ("struct A { bool; };", "t.fidl:2:16: expected a name after the type, found `;`"),
        ("struct A { vector<bool a; };", "t.fidl:2:24: expected `>` after the parameter of the type, found `a`"),
        ("struct A { array<bool> a; };", "t.fidl:2:12: expected `array<TYPE, COUNT>`"),
        ("union A { bool a; };", "t.fidl:2:11: expected the ordinal of a member, or `}`, found `bool`"),
        ("struct A { B b; };", "t.fidl:2:12: unknown type `B`"),
        ("struct A { A? a; uint8? b; };", "t.fidl:2:23: a number cannot be optional"),
        ("interface I { M(bool a); };", "t.fidl:2:1: `interface` is older than this syntax, which has `protocol`"),
        ("protocol P { 1: M(bool a); };", "t.fidl:2:14: methods with ordinals are older than this syntax"),
        (
            "struct A {}; protocol P { M(struct { a bool; }); };",
            "t.fidl:2:29: this is in today's syntax, but line 2 in that from before 2021: a file has one of them",
        ),
    ] {
        assert_eq!(refused(text), expected, "{text}");
    }
    let deep = format!("struct A {{ {}bool{} a; }};", "vector<".repeat(100), ">".repeat(100));
    assert!(refused(&deep).ends_with("more than 64 nested types"), "{}", refused(&deep));
    // Loops among new types and old structs end.
    let loops =
        compile([("a.fidl", "library a; type N = N;"), ("b.fidl", "library b; using a; struct S { a.N n; };")], &[]);
    assert!(loops.unwrap_err().to_string().contains("contains itself"));
}

#[test]
fn names_of_rust_are_left_to_rust() {
    let code = code("library test.old; struct Option { bool a; }; table Result { 1: Option o; };");
    assert!(code.contains("pub struct Option_") && code.contains("o: Option<Option_>"), "{code}");
}
