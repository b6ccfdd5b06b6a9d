//! The server. It uses `tracing`, and does not know Esatto.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tracing::{Instrument, Span, field::Empty};

use crate::store::Store;

/// Longest line of a request.
const MAX_LINE_BYTES: u64 = 8 * 1024;

/// Serves each connection in its own task, until it is cancelled.
pub(crate) async fn serve(listener: TcpListener, store: Store) -> io::Result<()> {
    loop {
        let (stream, peer) = listener.accept().await?;
        let span = tracing::info_span!("connection", %peer, requests = Empty);
        let store = store.clone();
        tokio::spawn(
            async move {
                if let Err(error) = connection(stream, &store).await {
                    tracing::warn!(error = &error as &dyn std::error::Error, "connection is broken");
                }
            }
            .instrument(span),
        );
    }
}

/// Answers the requests of a connection, one after the other.
async fn connection(stream: TcpStream, store: &Store) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut requests = 0_u64;
    while let Some(path) = read_request(&mut stream).await? {
        let (status, body) = respond(&path, store).await;
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        stream.flush().await?;
        requests += 1;
    }
    Span::current().record("requests", requests);
    Ok(())
}

/// Reads the requested path; `None` at the end of the connection.
async fn read_request(stream: &mut BufReader<TcpStream>) -> io::Result<Option<String>> {
    let mut path = None;
    loop {
        let mut line = String::new();
        let mut limited = tokio::io::AsyncReadExt::take(&mut *stream, MAX_LINE_BYTES);
        if limited.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        match &path {
            None => path = Some(line.split(' ').nth(1).unwrap_or("/").to_owned()),
            Some(path) if line.is_empty() => return Ok(Some(path.clone())),
            Some(_) => {}
        }
    }
}

/// Answers one request. Its span has its own lane, with the field `status`.
#[tracing::instrument(name = "request", skip(store), fields(status))]
async fn respond(path: &str, store: &Store) -> (&'static str, String) {
    let number = path.trim_start_matches('/').parse().unwrap_or(0);
    // A read that takes longer than 8 ms is cancelled.
    let answer = tokio::select! {
        answer = store.read(number) => answer,
        () = tokio::time::sleep(Duration::from_millis(8)) => None,
    };
    let (status, body) = match answer {
        Some(value) => ("200 OK", render(number, &value)),
        None => {
            tracing::warn!(number, "the store takes too long");
            ("503 Service Unavailable", String::new())
        }
    };
    Span::current().record("status", status);
    (status, body)
}

#[tracing::instrument(skip_all)]
fn render(number: u64, value: &str) -> String {
    format!("<p>{number}: {value}</p>\n").repeat(20)
}
