//! Names of calls: they come from a path that a stranger may have chosen.

use std::borrow::Cow;

use http::{Extensions, HeaderMap, Method, Uri};

use crate::options::Options;
use crate::sites::MAX_NAME_BYTES;

/// Name of a call of gRPC whose path does not look like a method.
const UNKNOWN_METHOD: &str = "gRPC";

/// The parts of a request that a [route](crate::ServerLayer::route) can be made of.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) extensions: &'a Extensions,
}

impl<'a> RequestHead<'a> {
    /// Returns the method.
    #[must_use]
    pub const fn method(&self) -> &'a Method {
        self.method
    }

    /// Returns the address. Its path and its query may hold ids, names and secrets.
    #[must_use]
    pub const fn uri(&self) -> &'a Uri {
        self.uri
    }

    /// Returns the headers.
    #[must_use]
    pub const fn headers(&self) -> &'a HeaderMap {
        self.headers
    }

    /// Returns the values that other layers and routers have attached to the request.
    #[must_use]
    pub const fn extensions(&self) -> &'a Extensions {
        self.extensions
    }
}

/// Returns the name of a call: `package.Service/Method` of gRPC, otherwise the method and the
/// route, if the program knows one.
pub(crate) fn of<'a>(head: &RequestHead<'a>, is_grpc: bool, options: &Options) -> Cow<'a, str> {
    if is_grpc {
        return of_path(head.uri.path()).unwrap_or(UNKNOWN_METHOD).into();
    }
    let method = of_method(head.method);
    match options.route(head) {
        Some(route) => {
            let mut name = format!("{method} {route}");
            name.truncate(name.floor_boundary(MAX_NAME_BYTES));
            name.into()
        }
        None => method.into(),
    }
}

/// Returns `package.Service/Method` of a path of gRPC.
fn of_path(path: &str) -> Option<&str> {
    let name = path.strip_prefix('/').filter(|name| name.len() <= MAX_NAME_BYTES)?;
    let (service, method) = name.split_once('/')?;
    let is_identifier = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
    };
    (is_identifier(service) && is_identifier(method)).then_some(name)
}

/// Returns the name of a method. A stranger can invent others.
fn of_method(method: &Method) -> &'static str {
    let known = [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::HEAD,
        Method::OPTIONS,
        Method::CONNECT,
        Method::PATCH,
        Method::TRACE,
    ];
    let names = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "CONNECT", "PATCH", "TRACE"];
    known.iter().position(|known| known == method).map_or("HTTP", |place| names[place])
}

trait FloorBoundary {
    /// Returns the end of the longest part of at most `most` bytes that has only whole characters.
    fn floor_boundary(&self, most: usize) -> usize;
}

impl FloorBoundary for str {
    fn floor_boundary(&self, most: usize) -> usize {
        (0..=most.min(self.len())).rev().find(|&end| self.is_char_boundary(end)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_of_grpc_are_named_by_their_path() {
        assert_eq!(of_path("/shop.v1.Shop/Buy"), Some("shop.v1.Shop/Buy"));
        for path in ["/", "", "/Shop", "/Shop/", "//Buy", "/Shop/Buy/7", "/Shop/B uy", "/Shop/%2e", "Shop/Buy"] {
            assert_eq!(of_path(path), None, "{path}");
        }
        assert_eq!(of_path(&format!("/Shop/{}", "x".repeat(MAX_NAME_BYTES))), None);
    }

    #[test]
    fn invented_methods_of_http_have_one_name() {
        assert_eq!(of_method(&Method::PATCH), "PATCH");
        assert_eq!(of_method(&Method::from_bytes(b"BREW").expect("a method")), "HTTP");
    }

    #[test]
    fn a_long_route_is_cut_between_characters() {
        assert_eq!("aä".floor_boundary(2), 1);
        assert_eq!("aä".floor_boundary(3), 3);
        assert_eq!("".floor_boundary(3), 0);
    }
}
