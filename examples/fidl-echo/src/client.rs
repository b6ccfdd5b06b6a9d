//! The client: it calls each method three times.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::Outcome;
use crate::fidl::examples_echo::echo::{Client, Event};
use crate::fidl::examples_echo::{EchoEchoStringRequest, EchoSendStringRequest};

pub(crate) fn run(socket: &Path) -> Outcome {
    let client = Client::new(OwnedFd::from(UnixStream::connect(socket)?).into())?;
    for text in ["one", "two", "three"] {
        let response = client.echo_string(&EchoEchoStringRequest::new(text.to_owned())).wait()?;
        if response.response != text {
            return Err("the echo is not the text".into());
        }
        client.send_string(&EchoSendStringRequest::new(text.to_owned()))?;
        match client.wait_event(None)? {
            Some(Event::OnString(event)) if event.response == text => {}
            other => return Err(format!("expected the event, not {other:?}").into()),
        }
    }
    Ok(())
}
