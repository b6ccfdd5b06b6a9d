use crate::common;
use esatto_text_format::{Parser, Places};

fn places(text: &str) -> Places {
    let (bytes, places) = Parser::new(common::config()).parse_with_places(text).expect("the text is right");
    assert_eq!(bytes, common::parse(text).expect("the text is right"), "the encoding is the same");
    places
}

/// Returns the names and values of all places, with the depth of each.
fn listed(text: &str) -> Vec<String> {
    let places = places(text);
    let depth = |mut parent: Option<usize>| {
        core::iter::from_fn(|| {
            parent = places[parent?].parent;
            Some(())
        })
        .count()
    };
    let place = |place: &esatto_text_format::Place| {
        let (name, value) = (&text[place.name.clone()], &text[place.value.clone()]);
        format!("{} {name}[{}] {value}", depth(place.parent), place.index)
    };
    places.iter().map(place).collect()
}

#[test]
fn values_have_the_bytes_that_they_stand_in() {
    let text = "buffers { size_kb: 7 } # x\nbuffers < size_kb 0x10 >\nduration_ms: 5,";
    let expected = [
        "0 buffers[0] { size_kb: 7 }",
        "1 size_kb[0] 7",
        "0 buffers[1] < size_kb 0x10 >",
        "1 size_kb[0] 0x10",
        "0 duration_ms[0] 5",
    ];
    assert_eq!(listed(text), expected);
}

#[test]
fn each_value_of_a_list_has_a_place() {
    let text = "unpacked: [1, 2] unpacked: 3 packed: [4]\ndata_sources { filter: ['a' 'b', \"c\"] } i32: - 5";
    let expected = [
        "0 unpacked[0] 1",
        "0 unpacked[1] 2",
        "0 unpacked[2] 3",
        "0 packed[0] 4",
        "0 data_sources[0] { filter: ['a' 'b', \"c\"] }",
        "1 filter[0] 'a' 'b'",
        "1 filter[1] \"c\"",
        "0 i32[0] - 5",
    ];
    assert_eq!(listed(text), expected);
}

#[test]
fn extensions_groups_and_maps_have_places() {
    let text = "data_sources { config { [test.extra] { symbolize: true } } } Pair { a: 1 } map { key: 'k' value: 2 }";
    let expected = [
        "0 data_sources[0] { config { [test.extra] { symbolize: true } } }",
        "1 config[0] { [test.extra] { symbolize: true } }",
        "2 test.extra[0] { symbolize: true }",
        "3 symbolize[0] true",
        "0 Pair[0] { a: 1 }",
        "1 a[0] 1",
        "0 map[0] { key: 'k' value: 2 }",
        "1 key[0] 'k'",
        "1 value[0] 2",
    ];
    assert_eq!(listed(text), expected);
}

#[test]
fn a_field_is_found_by_its_number_and_its_message() {
    let text = "buffers { size_kb: 7 }\nbuffers {\n  inner { size_kb: 8 }\n  size_kb: 9\n}\n";
    let places = places(text);
    let second = places.find(None, 1, 1).expect("there are two buffers");
    let size = places.find(Some(second), 1, 0).expect("it has a size");
    assert_eq!(&text[places[size].value.clone()], "9");
    assert_eq!(places.line_of(places[size].name.start), 4);
    assert_eq!(places.start_of_line(4), text.find("  size_kb: 9"));
    assert_eq!((places.line_of(0), places.start_of_line(1)), (1, Some(0)));
    assert_eq!((places.start_of_line(0), places.start_of_line(7)), (None, None));
    assert_eq!(places.find(None, 1, 2), None);
    let first = places.find(None, 1, 0);
    assert_eq!(places.find(first, 10, 0), None, "the second buffer has it");
}
