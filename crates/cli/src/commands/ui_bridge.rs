//! The command `esatto ui-bridge`, which is also the program `websocket_bridge`
//! (`docs/spec/cli.md` §24).

use std::ffi::OsString;
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::process::ExitCode;

use clap::Parser;
use esatto_ipc::{Address, Stream};
use esatto_ui_server::{BRIDGE_PORT, Bridge, BridgeOptions, Error, Server};

use crate::args;
use crate::console::say;
use crate::failure::{Attempt as _, Failure};
use crate::service_connection::{self, CONNECT_TIMEOUT};
use crate::stop_signal::StopSignal;

/// Variable with the address of the server of adb.
const ADB_SERVER_SOCKET: &str = "ADB_SERVER_SOCKET";
const ADB_SERVER: &str = "tcp:127.0.0.1:5037";

pub(crate) const USAGE: &str = "\
Usage: websocket_bridge [OPTION]...

Lets pages of Perfetto's UI use the tracing service and the adb server of this machine, by WebSocket on port 8037. Ctrl-C
ends it.

      --http-additional-cors-origins O1,O2   further origins whose pages may connect, such as https://traces.example.com
  -h, --help                                 print this help
";

#[derive(Debug, Parser)]
#[command(name = "websocket_bridge", override_help = USAGE)]
struct WebsocketBridge {
    #[arg(long = "http-additional-cors-origins", value_name = "O1,O2", value_delimiter = ',')]
    origins: Vec<String>,
}

/// The program `websocket_bridge`.
pub(crate) fn websocket_bridge(args: Vec<OsString>) -> ExitCode {
    let args = std::iter::once("websocket_bridge".into()).chain(args);
    let args = WebsocketBridge::parse_from::<_, OsString>(args);
    let args = args::UiBridge { port: BRIDGE_PORT, origins: args.origins, adb: true };
    run(&args).unwrap_or_else(|failure| {
        say!("websocket_bridge: {failure}");
        ExitCode::FAILURE
    })
}

pub(crate) fn run(args: &args::UiBridge) -> Result<ExitCode, Failure> {
    let options = BridgeOptions { origins: args.origins.clone() };
    let address = service_connection::address()?;
    let service = address.to_string();
    let mut bridge = Bridge::new(&options).map_err(failed)?;
    bridge = bridge.path("/traced", Box::new(move || connect(&address)));
    if args.adb {
        let server = adb_server()?;
        bridge = bridge.path(
            "/adb",
            Box::new(move || {
                let connected = TcpStream::connect(&*server);
                connected.map(Into::into).map_err(|error| format!("cannot reach the adb server at {server}: {error}"))
            }),
        );
    }
    let server = Server::bind_both(args.port).map_err(failed)?;
    let stop = StopSignal::install().attempt(|| "cannot handle signals".to_owned())?;
    let origins: Vec<_> = bridge.origins().collect();
    say!("Bridge to the tracing service at {service}: ws://{}/traced", server.address());
    say!("Pages of these origins can record and end sessions until Ctrl-C: {}", origins.join(", "));
    server.serve(bridge, stop.as_fd(), |_, _| false).map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}

/// Connects to the service, but not to that of another user on an address that is open to all.
fn connect(address: &Address) -> Result<std::os::fd::OwnedFd, String> {
    let failed = |error| {
        let why = format!("cannot reach a tracing service at {address}: {error}");
        say!("A page wants to record, but {why}");
        why
    };
    let stream = Stream::connect(address, CONNECT_TIMEOUT).map_err(failed)?;
    service_connection::refuse_stranger(&stream, address).map_err(failed)?;
    Ok(stream.into())
}

/// Returns host and port of the server of adb.
fn adb_server() -> Result<String, Failure> {
    let named = std::env::var(ADB_SERVER_SOCKET).ok().filter(|value| !value.is_empty());
    let named = named.unwrap_or_else(|| ADB_SERVER.to_owned());
    adb_address(&named).ok_or_else(|| {
        let what = format!("{ADB_SERVER_SOCKET} is '{named}'");
        Failure::new(what, "only TCP is possible").hint("write tcp:HOST:PORT or tcp:PORT")
    })
}

fn adb_address(named: &str) -> Option<String> {
    let address = named.strip_prefix("tcp:")?;
    let (host, port) = address.rsplit_once(':').unwrap_or(("127.0.0.1", address));
    port.parse::<u16>().ok()?;
    Some(format!("{host}:{port}"))
}

fn failed(error: Error) -> Failure {
    match error {
        Error::Listen { address, source } => {
            let failure = Failure::new(format!("cannot listen on {address}"), source);
            failure.hint("another bridge may run; pages look for it at port 8037, --port chooses another one")
        }
        error => Failure::new("cannot run the bridge", error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_of_adb_is_at_a_port() {
        assert_eq!(adb_address("tcp:5037").as_deref(), Some("127.0.0.1:5037"));
        assert_eq!(adb_address("tcp:[::1]:99").as_deref(), Some("[::1]:99"));
        assert_eq!(adb_address("tcp:adb.example:99").as_deref(), Some("adb.example:99"));
        for wrong in ["", "tcp:", "tcp:x", "tcp:99999", "localfilesystem:/tmp/x", "127.0.0.1:5037"] {
            assert_eq!(adb_address(wrong), None, "{wrong}");
        }
    }
}
