use crate::fixture::shop::{Method, SERVICE};

#[test]
fn methods_are_found_by_name_and_number() {
    assert_eq!(SERVICE, "Shop");
    assert_eq!(Method::ALL, [Method::Buy, Method::Watch]);
    assert_eq!(Method::from_name(b"Watch"), Some(Method::Watch));
    assert_eq!(Method::from_id(1), Some(Method::Buy));
    assert_eq!(Method::from_id(0), None);
    assert_eq!((Method::Watch.id(), Method::Watch.name()), (2, "Watch"));
    assert!(Method::Watch.is_streaming() && !Method::Buy.is_streaming());
}
