//! One trace, for the page of another origin to fetch once.

use crate::http::{Answer, Request, Status};
use crate::{Site, Token, TraceSource};

/// The origin of Perfetto's public UI.
pub const UI_ORIGIN: &str = "https://ui.perfetto.dev";

/// Hands a trace over to the page of an origin, and to nobody else (`docs/spec/cli.md` §26).
#[derive(Debug)]
pub struct Handover {
    trace: TraceSource,
    token: Token,
    authority: String,
    origin: String,
}

impl Handover {
    /// The port and address that the policy of the public UI permits.
    pub const ADDRESS: ([u8; 4], u16) = ([127, 0, 0, 1], 9001);

    /// Hands `trace` over to pages of `origin`. `authority` is the address of the server with its
    /// port.
    #[must_use]
    pub fn new(trace: TraceSource, token: Token, authority: &str, origin: &str) -> Self {
        Self { trace, token, authority: authority.to_owned(), origin: origin.to_owned() }
    }

    /// The address of the trace.
    #[must_use]
    pub fn trace_url(&self) -> String {
        format!("http://{}/{}/{}", self.authority, self.token.as_str(), self.trace.url_name())
    }

    /// The address of the page that fetches the trace.
    #[must_use]
    pub fn page_url(&self) -> String {
        let escaped = self.trace_url().replace(':', "%3A").replace('/', "%2F");
        format!("{}/#!/?url={escaped}&referrer=esatto", self.origin)
    }
}

impl Site for Handover {
    fn answer(&self, request: &Request) -> Answer {
        if request.header("host") != Some(&self.authority) {
            return Answer::refusal(Status::Forbidden, "another host was asked for\n");
        }
        if request.header("origin") != Some(&self.origin) {
            return Answer::refusal(Status::Forbidden, "only the page that was opened may ask\n");
        }
        let path = request.path().strip_prefix('/').unwrap_or_default();
        let is_trace =
            path.split_once('/').is_some_and(|(token, name)| self.token.is(token) && name == self.trace.url_name());
        if !is_trace {
            return Answer::refusal(Status::NotFound, "there is no such page\n");
        }
        let answer = |status, body| {
            Answer::new(status, body)
                .header("access-control-allow-origin", self.origin.clone())
                .header("vary", "origin")
                .header("cache-control", "no-cache")
                .admitted()
        };
        match request.method() {
            "GET" => answer(Status::Ok, self.trace.body())
                .header("content-type", "application/octet-stream")
                .header("x-content-type-options", "nosniff")
                .delivery(),
            // Browsers ask before a page of the internet reaches loopback.
            "OPTIONS" => answer(Status::NoContent, crate::http::Body::Empty)
                .header("access-control-allow-methods", "GET")
                .header("access-control-allow-private-network", "true"),
            _ => Answer::refusal(Status::MethodNotAllowed, "GET is the only method\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(site: &Handover, method: &str, path: &str, host: &str, origin: &str) -> Status {
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\n\r\n");
        site.answer(&Request::parse(head.as_bytes()).unwrap().unwrap().0).status()
    }

    #[test]
    fn only_the_page_gets_the_trace() {
        let trace = TraceSource::from_bytes(b"trace".to_vec(), "a b.pftrace");
        let site = Handover::new(trace, Token::random().unwrap(), "127.0.0.1:9001", UI_ORIGIN);
        let url = site.trace_url();
        let path = url.strip_prefix("http://127.0.0.1:9001").unwrap();
        assert!(path.ends_with("/a_b.pftrace"), "{path}");
        let (host, ui) = ("127.0.0.1:9001", UI_ORIGIN);
        assert_eq!(ask(&site, "GET", path, host, ui), Status::Ok);
        assert_eq!(ask(&site, "OPTIONS", path, host, ui), Status::NoContent);
        assert_eq!(ask(&site, "POST", path, host, ui), Status::MethodNotAllowed);
        assert_eq!(ask(&site, "GET", "/a_b.pftrace", host, ui), Status::NotFound);
        assert_eq!(ask(&site, "GET", "/", host, ui), Status::NotFound);
        assert_eq!(ask(&site, "GET", path, "evil.example:9001", ui), Status::Forbidden);
        for origin in ["https://evil.example", "null", "https://ui.perfetto.dev.evil.example", "http://ui.perfetto.dev"]
        {
            assert_eq!(ask(&site, "GET", path, host, origin), Status::Forbidden, "{origin}");
        }
    }

    #[test]
    fn the_page_learns_where_the_trace_is() {
        let trace = TraceSource::from_bytes(Vec::new(), "a b");
        let site = Handover::new(trace, Token::random().unwrap(), "127.0.0.1:9001", UI_ORIGIN);
        let page = site.page_url();
        assert!(page.starts_with("https://ui.perfetto.dev/#!/?url=http%3A%2F%2F127.0.0.1%3A9001%2F"), "{page}");
        assert!(page.ends_with("%2Fa_b&referrer=esatto"), "{page}");
    }
}
