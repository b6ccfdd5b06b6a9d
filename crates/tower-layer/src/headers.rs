//! Headers that a peer sends: anything may be in them.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};

/// Returns the value of a header that is there once.
pub(crate) fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() { None } else { first }
}

/// Returns whether the body consists of messages of gRPC: `application/grpc`, also with the name of
/// an encoding, such as `application/grpc+proto`. gRPC-Web has other bodies.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE) else { return false };
    match value.as_bytes().strip_prefix(b"application/grpc") {
        Some(rest) => matches!(rest.first(), None | Some(b'+' | b';')),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grpc_is_told_by_its_content_type() {
        let is = |content_type: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
            is_grpc(&headers)
        };
        assert!(is("application/grpc") && is("application/grpc+proto") && is("application/grpc;charset=utf-8"));
        assert!(!is("application/grpc-web") && !is("application/json") && !is("application/grp"));
        assert!(!is_grpc(&HeaderMap::new()));
    }
}
