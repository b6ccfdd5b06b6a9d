//! A client that sends requests.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Sends a number of requests over one connection, and returns the number of answers.
#[tracing::instrument(name = "client", skip(address))]
pub(crate) async fn run(id: u64, address: SocketAddr, requests: u64) -> io::Result<u64> {
    let mut stream = BufReader::new(TcpStream::connect(address).await?);
    for request in 0..requests {
        ask(&mut stream, id * 7 + request * 3).await?;
    }
    Ok(requests)
}

#[tracing::instrument(skip(stream), fields(bytes))]
async fn ask(stream: &mut BufReader<TcpStream>, number: u64) -> io::Result<()> {
    stream.write_all(format!("GET /{number} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.trim().parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        }
        if line.trim_end().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    tracing::Span::current().record("bytes", length);
    Ok(())
}
