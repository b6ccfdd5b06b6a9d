//! The site that shows one trace.

mod policy;

use std::borrow::Cow;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};

use self::policy::{PAGE_POLICY, REPORT_POLICY, TRACE_POLICY};
use crate::http::{Answer, Body, Request, Status};
use crate::token::random_bytes;
use crate::ui_files::media_type;
use crate::{Activity, Error, Site, Token, TraceSource, UiFiles};

/// The script that runs before the UI.
const PAGE_SCRIPT: &str = include_str!("page.js");

/// The pages of a [`View`].
#[derive(Debug)]
pub enum Content {
    /// Perfetto's UI, with a trace.
    Ui(UiFiles, TraceSource),
    /// One page that needs nothing else.
    Page(Vec<u8>),
}

/// Shows one trace, below a token.
#[derive(Debug)]
pub struct View {
    content: Shown,
    token: Token,
    /// The address and the port, as a browser names them.
    authority: String,
    activity: Activity,
}

#[derive(Debug)]
enum Shown {
    Ui { files: UiFiles, trace: TraceSource, index: Arc<[u8]>, policy: String },
    Page(Arc<[u8]>),
}

impl View {
    /// Makes the site of the server at this address.
    ///
    /// # Errors
    ///
    /// The UI cannot be read, or the system has no random bytes.
    pub fn new(content: Content, token: Token, address: SocketAddr, activity: Activity) -> Result<Self, Error> {
        let content = match content {
            Content::Ui(files, trace) => {
                let nonce = Token::random()?;
                let index = policy::with_our_script(&files.index()?, nonce.as_str(), trace.url_name());
                let policy = PAGE_POLICY.replace("NONCE", nonce.as_str());
                Shown::Ui { files, trace, index: index.into_bytes().into(), policy }
            }
            Content::Page(page) => Shown::Page(page.into()),
        };
        Ok(Self { content, token, authority: address.to_string(), activity })
    }

    /// The address that shows the trace.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.authority, self.token.as_str())
    }

    /// Returns why a request is none of our page, if so.
    fn stranger(&self, request: &Request) -> Option<&'static str> {
        // A page whose name leads to this address now has another host.
        if request.header("host") != Some(&self.authority) {
            return Some("another host was asked for\n");
        }
        let ours = format!("http://{}", self.authority);
        if request.header("origin").is_some_and(|origin| origin != ours) {
            return Some("pages of other origins may not ask\n");
        }
        match request.header("sec-fetch-site") {
            None | Some("same-origin" | "none") => None,
            Some(_) => Some("pages of other sites may not ask\n"),
        }
    }

    /// Answers a request that may be one of our page: it is, if it has the token.
    fn answer_own(&self, request: &Request) -> Answer {
        let path = request.path().strip_prefix('/').unwrap_or_default();
        let (token, path) = path.split_once('/').map_or((path, None), |(token, path)| (token, Some(path)));
        if !self.token.is(token) {
            return not_found();
        }
        let answer = match (request.method(), path) {
            ("GET" | "HEAD", Some(path)) => self.page(path),
            ("GET" | "HEAD", None) => Answer::new(Status::Moved, Body::Empty).header("location", self.url()),
            _ => Answer::refusal(Status::MethodNotAllowed, "GET and HEAD are the only methods\n"),
        };
        answer.admitted()
    }

    /// Answers a request for a path below the token.
    fn page(&self, path: &str) -> Answer {
        match &self.content {
            Shown::Page(page) if path.is_empty() => {
                let answer = Answer::new(Status::Ok, Body::Shared(Arc::clone(page))).delivery();
                answer.header("content-type", media_type(".html")).header("content-security-policy", REPORT_POLICY)
            }
            Shown::Page(_) => not_found(),
            Shown::Ui { files, trace, index, policy } => {
                let policy = policy.clone();
                match path {
                    "" | "index.html" => with_type(Body::Shared(Arc::clone(index)), ".html", policy),
                    "esatto/page.js" => with_type(Body::Text(PAGE_SCRIPT.into()), ".js", policy),
                    "esatto/open" => self.open_page(policy),
                    _ if path.strip_prefix("trace/") == Some(trace.url_name()) => {
                        with_type(trace.body(), "", TRACE_POLICY).delivery()
                    }
                    _ => match files.get(path) {
                        Ok(Some(file)) => with_type(Body::Stream(file.size, file.bytes), path, policy),
                        Ok(None) => not_found(),
                        Err(error) => Answer::refusal(Status::Failed, format!("cannot read the UI: {error}\n")),
                    },
                }
            }
        }
    }

    /// An answer that lasts as long as the page is open.
    fn open_page(&self, policy: String) -> Answer {
        let activity = self.activity.clone();
        let wait = move |stream: TcpStream, _| {
            let _page = activity.page();
            // The page sends nothing more, so all that comes is the end.
            let mut fds = [PollFd::new(&stream, PollFlags::IN | PollFlags::RDHUP)];
            while let Err(rustix::io::Errno::INTR) = poll(&mut fds, None) {}
        };
        with_type(Body::Takeover(Box::new(wait)), "", policy)
    }
}

fn with_type(body: Body, name: &str, policy: impl Into<Cow<'static, str>>) -> Answer {
    let answer = Answer::new(Status::Ok, body).header("content-type", media_type(name));
    answer.header("content-security-policy", policy)
}

fn not_found() -> Answer {
    Answer::refusal(Status::NotFound, "there is no such page\n")
}

impl Site for View {
    fn answer(&self, request: &Request) -> Answer {
        let answer = match self.stranger(request) {
            // A page of another origin does not even learn that there was an answer.
            Some(why) => Answer::refusal(Status::Forbidden, why),
            None => self.answer_own(request),
        };
        let headers = [
            ("cache-control", "no-store"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
        ];
        headers.into_iter().fold(answer, |answer, (name, value)| answer.header(name, value))
    }
}

/// Returns a random address of loopback, other than 127.0.0.1.
///
/// A page at such an address has an origin that no page had before: there is no service worker, no
/// cache and no setting of another program. Perfetto's UI takes `localhost` and 127.0.0.1 for its
/// own sites, and reports there to Google Analytics.
///
/// # Errors
///
/// The system has no random bytes.
pub fn private_address() -> Result<Ipv4Addr, Error> {
    let [a, b, c] = random_bytes::<3>()?;
    // Neither the network's own address nor that for all.
    Ok(Ipv4Addr::new(127, a % 253 + 1, b, c % 253 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "127.8.8.8:4000";

    fn site() -> View {
        let activity = Activity::new();
        let page = Content::Page(b"<!doctype html>".to_vec());
        View::new(page, Token::random().unwrap(), HOST.parse().unwrap(), activity).unwrap()
    }

    fn ask(site: &View, method: &str, path: &str, headers: &str) -> Answer {
        let head = format!("{method} {path} HTTP/1.1\r\n{headers}\r\n");
        site.answer(&Request::parse(head.as_bytes()).unwrap().unwrap().0)
    }

    #[test]
    fn only_the_token_leads_to_the_page() {
        let site = site();
        let url = site.url();
        let path = url.strip_prefix("http://127.8.8.8:4000").unwrap();
        let host = format!("Host: {HOST}\r\n");
        let answer = ask(&site, "GET", path, &host);
        assert!(answer.status() == Status::Ok && answer.is_admitted && answer.is_delivery);
        assert_eq!(ask(&site, "HEAD", path, &host).status(), Status::Ok);
        assert_eq!(ask(&site, "GET", path.trim_end_matches('/'), &host).status(), Status::Moved);
        assert_eq!(ask(&site, "POST", path, &host).status(), Status::MethodNotAllowed);
        assert_eq!(ask(&site, "GET", &format!("{path}x"), &host).status(), Status::NotFound);
        let wrong = format!("/{}/", "0".repeat(32));
        for path in ["/", "/index.html", "/service_worker.js", "/vizviewer_info", "//", &wrong, &path[..path.len() - 2]]
        {
            let answer = ask(&site, "GET", path, &host);
            assert!(answer.status() == Status::NotFound && !answer.is_admitted, "{path}");
        }
    }

    #[test]
    fn other_pages_may_not_ask() {
        let site = site();
        let url = site.url();
        let path = url.strip_prefix("http://127.8.8.8:4000").unwrap();
        for headers in [
            String::new(),
            "Host: evil.example\r\n".to_owned(),
            "Host: 127.8.8.8\r\n".to_owned(),
            "Host: localhost:4000\r\n".to_owned(),
            format!("Host: {HOST}\r\nOrigin: https://evil.example\r\n"),
            format!("Host: {HOST}\r\nOrigin: null\r\n"),
            format!("Host: {HOST}\r\nSec-Fetch-Site: cross-site\r\n"),
            format!("Host: {HOST}\r\nSec-Fetch-Site: same-site\r\n"),
        ] {
            let answer = ask(&site, "GET", path, &headers);
            assert!(answer.status() == Status::Forbidden && !answer.is_admitted, "{headers}");
        }
        let headers = format!("Host: {HOST}\r\nOrigin: http://{HOST}\r\nSec-Fetch-Site: same-origin\r\n");
        assert_eq!(ask(&site, "GET", path, &headers).status(), Status::Ok);
    }

    #[test]
    fn the_address_is_of_loopback_but_not_the_usual_one() {
        for _ in 0..100 {
            let address = private_address().unwrap();
            assert!(address.is_loopback() && address.octets()[1] != 0, "{address}");
        }
    }
}
