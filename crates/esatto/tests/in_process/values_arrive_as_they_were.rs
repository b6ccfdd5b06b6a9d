use esatto::{AnnotationWriter, Value};
use esatto_trace::AnnotationValue as V;

use super::{read, record};

esatto::categories! { static VALUES = "values"; }

struct Size(u32, u32);

impl Value for Size {
    fn write(&self, out: AnnotationWriter<'_>) {
        out.dict().add("width", self.0).add("height", self.1);
    }
}

#[test]
fn every_type_of_value_arrives() {
    let session = record(&VALUES);
    let text = String::from("grün");
    esatto::instant!(
        VALUES,
        "all",
        unsigned = u64::MAX,
        small = 7_u8,
        signed = i64::MIN,
        double = 0.25,
        yes = true,
        text = &text,
        letter = 'ß',
        nothing = None::<u32>,
        something = Some(5_u32),
        "a list" = [1_u32, 2, 3],
        size = Size(4, 3),
        |event| event.annotate("dynamic name", -1)
    );
    let trace = read(session);
    let found: Vec<_> = trace.events[0].annotations.iter().map(|a| (a.name.as_str(), a.value.clone())).collect();
    let list = vec![V::Uint(1), V::Uint(2), V::Uint(3)];
    let size: Vec<_> = found.iter().filter(|(name, _)| *name == "size").cloned().collect();
    let expected = [
        ("unsigned", V::Uint(u64::MAX)),
        ("small", V::Uint(7)),
        ("signed", V::Int(i64::MIN)),
        ("double", V::Double(0.25)),
        ("yes", V::Bool(true)),
        ("text", V::String("grün".into())),
        ("letter", V::String("ß".into())),
        ("nothing", V::Empty),
        ("something", V::Uint(5)),
        ("a list", V::Array(list)),
        ("dynamic name", V::Int(-1)),
    ];
    let others: Vec<_> = found.iter().filter(|(name, _)| *name != "size").cloned().collect();
    assert_eq!(others, expected);
    let [(_, V::Dict(entries))] = &size[..] else { panic!("{size:?}") };
    let entries: Vec<_> = entries.iter().map(|e| (e.name.as_str(), e.value.clone())).collect();
    assert_eq!(entries, [("width", V::Uint(4)), ("height", V::Uint(3))]);
}
