//! The server: it answers one client, on one thread.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;

use esatto_fidl::{EventSender, Responder};

use crate::Outcome;
use crate::fidl::examples_echo::echo::{Events, Methods, method, serve};
use crate::fidl::examples_echo::{
    Echo, EchoEchoStringRequest, EchoEchoStringResponse, EchoOnStringRequest, EchoSendStringRequest,
};

#[derive(Debug, Default)]
struct Server {
    events: Option<EventSender<Echo>>,
}

impl Methods for Server {
    fn echo_string(&mut self, request: EchoEchoStringRequest, responder: Responder<method::EchoString>) {
        // If the client is gone, nobody waits for the response.
        let _ = responder.send(&EchoEchoStringResponse::new(request.value));
    }

    fn send_string(&mut self, request: EchoSendStringRequest) {
        if let Some(events) = &self.events {
            let _ = events.on_string(&EchoOnStringRequest::new(request.value));
        }
    }
}

pub(crate) fn run(socket: &Path) -> Outcome {
    let listener = UnixListener::bind(socket)?;
    println!("ready");
    let (stream, _) = listener.accept()?;
    let mut server = serve(OwnedFd::from(stream).into(), Server::default())?;
    server.methods().0.events = Some(server.events());
    Ok(server.run()?)
}
