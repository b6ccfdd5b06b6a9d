//! A part of Perfetto's services, with a category and without. The real bindings (`esatto-ports`)
//! never have one, because the tracing protocol must not trace itself.

use std::os::fd::AsFd;

use esatto_ipc::sys::{PollFd, poll};
use esatto_ipc::{Channel, Listener, Server};
use esatto_schema::{QueryServiceStateResponse, TracingServiceState};

/// The version that [`serve`] tells Perfetto's command.
pub const VERSION: &str = "a service of traced bindings";

macro_rules! ports {
    ($(#[$doc:meta])* $name:ident, $category:tt) => {
        $(#[$doc])*
        pub mod $name {
            use esatto_ipc::Status;
            use esatto_ipc::server::{Context, Replies};
            use esatto_schema::{
                GetTraceStatsRequest, GetTraceStatsResponse, InitializeConnectionRequest,
                InitializeConnectionResponse, QueryServiceStateRequest, QueryServiceStateResponse, SyncRequest,
                SyncResponse,
            };

            /// The service of consumers.
            #[esatto::trace_rpc(category = $category, name = "ConsumerPort")]
            pub trait Consumer {
                /// As in Perfetto's schema.
                async fn query_service_state(
                    &self,
                    context: &Context,
                    request: QueryServiceStateRequest,
                    replies: Replies<QueryServiceStateResponse>,
                ) -> Result<(), Status>;
                /// As in Perfetto's schema.
                async fn get_trace_stats(
                    &self,
                    context: &Context,
                    request: GetTraceStatsRequest,
                ) -> Result<GetTraceStatsResponse, Status>;
            }

            /// The service of producers.
            #[esatto::trace_rpc(category = $category, name = "ProducerPort")]
            pub trait Producer {
                /// As in Perfetto's schema.
                async fn initialize_connection(
                    &self,
                    context: &Context,
                    request: InitializeConnectionRequest,
                ) -> Result<InitializeConnectionResponse, Status>;
                /// As in Perfetto's schema.
                async fn sync(&self, context: &Context, request: SyncRequest) -> Result<SyncResponse, Status>;
            }

            impl Consumer for super::Answers {
                async fn query_service_state(
                    &self,
                    _: &Context,
                    _: QueryServiceStateRequest,
                    mut replies: Replies<QueryServiceStateResponse>,
                ) -> Result<(), Status> {
                    Ok(replies.send(&super::state()).await?)
                }

                async fn get_trace_stats(
                    &self,
                    _: &Context,
                    _: GetTraceStatsRequest,
                ) -> Result<GetTraceStatsResponse, Status> {
                    Err(Status::new(esatto_ipc::Code::FailedPrecondition, "there is no session"))
                }
            }

            /// Calls a tracing service: one call of each kind, and one that it rejects.
            ///
            /// # Panics
            ///
            /// It answers otherwise.
            pub fn call(consumer: &esatto_ipc::Channel, producer: &esatto_ipc::Channel) {
                let consumer = consumer::Client::new(consumer);
                let states = consumer.query_service_state(&QueryServiceStateRequest::default());
                assert!(states.map(Result::unwrap).any(|reply| reply.service_state.is_some()));
                consumer.get_trace_stats(&GetTraceStatsRequest::default()).wait().expect_err("there is no session");
                let producer = producer::Client::new(producer);
                let hello =
                    InitializeConnectionRequest { producer_name: Some("bindings".into()), ..Default::default() };
                producer.initialize_connection(&hello).wait().expect("is answered");
                producer.sync(&SyncRequest::default()).wait().expect("is answered");
            }
        }
    };
}

ports! {
    /// With the category.
    traced, "bindings"
}
ports! {
    /// The same services without a category.
    plain, ""
}

/// Service that only says how it is.
#[derive(Debug)]
pub struct Answers;

fn state() -> QueryServiceStateResponse {
    let state = TracingServiceState { tracing_service_version: Some(VERSION.into()), ..Default::default() };
    QueryServiceStateResponse { service_state: Some(state.into()), ..Default::default() }
}

/// Calls a tracing service.
pub fn call(consumer: &Channel, producer: &Channel, has_category: bool) {
    if has_category { traced::call(consumer, producer) } else { plain::call(consumer, producer) }
}

/// Answers one client until it closes the connection.
///
/// # Panics
///
/// The socket fails.
pub fn serve(listener: &Listener, has_category: bool) {
    println!("ready");
    let stream = loop {
        poll(&mut [PollFd::new(listener.as_fd(), false)], None).expect("waits");
        if let Some(stream) = listener.accept().expect("accepts") {
            break stream;
        }
    };
    if has_category {
        Server::new(traced::consumer::ServeAsync::new(Answers)).connection(stream).block();
    } else {
        Server::new(plain::consumer::ServeAsync::new(Answers)).connection(stream).block();
    }
}
