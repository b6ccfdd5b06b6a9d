use std::sync::mpsc::{Sender, channel};
use std::thread;

use esatto::TraceConfig;
use esatto_ipc::server::{Context, Incoming, Replies, ServerConnection, ServerLimits};
use esatto_ipc::service::Kind;
use esatto_ipc::{Channel, Code, Status, Stream};

/// The module may have any name, and the types any path.
#[esatto::trace_rpc(category = "macros.rpc", name = "Configs", module = bindings)]
pub(crate) trait TheConfigs {
    /// Returns the configuration again.
    async fn echo(&self, context: &Context, request: TraceConfig) -> Result<TraceConfig, Status>;
    async fn count_down(
        &self,
        context: &Context,
        request: TraceConfig,
        replies: Replies<TraceConfig>,
    ) -> Result<(), Status>;
    #[rpc(category = "", name = "Remark")]
    async fn note(&self, context: &Context, request: TraceConfig);
}

/// A trait without methods, options and callers.
#[esatto::trace_rpc]
trait NothingAtAll {}

struct Shelf(Sender<u32>);

impl TheConfigs for Shelf {
    async fn echo(&self, _: &Context, request: TraceConfig) -> Result<TraceConfig, Status> {
        match request.duration_ms {
            Some(0) => Err(Status::new(Code::InvalidArgument, "no time at all")),
            _ => Ok(request),
        }
    }

    async fn count_down(
        &self,
        _: &Context,
        request: TraceConfig,
        mut replies: Replies<TraceConfig>,
    ) -> Result<(), Status> {
        for left in (0..request.duration_ms.unwrap_or(0)).rev() {
            replies.send(&config(left)).await?;
        }
        Ok(())
    }

    async fn note(&self, _: &Context, request: TraceConfig) {
        let _ = self.0.send(request.duration_ms.unwrap_or(0));
    }
}

/// The same for an event loop.
struct Doubling;

impl bindings::Handler for Doubling {
    fn echo(&mut self, call: Incoming<'_, bindings::method::Echo>) {
        call.answer(|request| Ok(config(2 * request.duration_ms.unwrap_or(0))));
    }

    fn count_down(&mut self, call: Incoming<'_, bindings::method::CountDown>) {
        call.into_replies().finish();
    }

    fn note(&mut self, _: Incoming<'_, bindings::method::Remark>) {}
}

fn config(duration_ms: u32) -> TraceConfig {
    TraceConfig { duration_ms: Some(duration_ms), ..TraceConfig::default() }
}

fn client(dispatch: impl esatto_ipc::server::Dispatch + Send + 'static) -> bindings::Client {
    let (ours, theirs) = Stream::pair().unwrap();
    thread::spawn(move || ServerConnection::new(theirs, dispatch, ServerLimits::default()).block());
    bindings::Client::new(&Channel::new(ours))
}

#[test]
fn calls_of_the_client_reach_the_trait() {
    let (notes, noted) = channel();
    let client = client(bindings::ServeAsync::new(Shelf(notes)));
    assert_eq!(client.echo(&config(7)).wait(), Ok(config(7)));
    let error = client.echo(&config(0)).wait().unwrap_err();
    assert_eq!((error.method(), error.code()), ("Configs.Echo", Code::InvalidArgument));
    let left: Vec<_> = client.count_down(&config(3)).map(|reply| reply.unwrap().duration_ms.unwrap()).collect();
    assert_eq!(left, [2, 1, 0]);
    client.note(&config(9)).send().unwrap();
    assert_eq!(noted.recv(), Ok(9));
}

#[test]
fn a_handler_can_serve_instead() {
    let client = client(bindings::Serve(Doubling));
    assert_eq!(client.echo(&config(7)).wait(), Ok(config(14)));
    assert_eq!(client.count_down(&config(3)).count(), 0);
}

#[test]
fn the_description_is_that_of_a_schema() {
    let methods: Vec<_> = bindings::SERVICE
        .methods
        .iter()
        .map(|method| (method.full_name, method.kind, method.trace.map(|site| site.category())))
        .collect();
    assert_eq!(
        methods,
        [
            ("Configs.Echo", Kind::Unary, Some("macros.rpc")),
            ("Configs.CountDown", Kind::ServerStream, Some("macros.rpc")),
            ("Configs.Remark", Kind::OneWay, None),
        ]
    );
    assert_eq!((nothing_at_all::SERVICE.name, nothing_at_all::SERVICE.methods.len()), ("NothingAtAll", 0));
}
