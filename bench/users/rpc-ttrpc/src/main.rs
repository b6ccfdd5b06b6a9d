//! A client and a server of one method, blocking, with the code that the generator would make.

use std::collections::HashMap;
use std::sync::Arc;

use protobuf::well_known_types::wrappers::BytesValue as Payload;
use ttrpc::proto::{Codec, Request};
use ttrpc::sync::{Client, MethodHandler, Server, TtrpcContext};

struct Echo;

impl Echo {
    fn call(&self, _: &TtrpcContext, request: Payload) -> ttrpc::Result<Payload> {
        Ok(request)
    }
}

struct Method {
    service: Arc<Echo>,
}

impl MethodHandler for Method {
    fn handler(&self, ctx: TtrpcContext, req: Request) -> ttrpc::Result<()> {
        ttrpc::request_handler!(self, ctx, req, Payload, call);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = "unix://@/bench-user";
    let method: Box<dyn MethodHandler + Send + Sync> = Box::new(Method { service: Arc::new(Echo) });
    let methods = HashMap::from([("/bench.Echo/Call".to_owned(), method)]);
    let mut server = Server::new().bind(address)?.register_service(methods);
    server.start()?;
    let mut payload = Payload::new();
    payload.value = b"hello".to_vec();
    let mut request = Request::new();
    request.service = "bench.Echo".to_owned();
    request.method = "Call".to_owned();
    request.payload = Codec::encode(&payload)?;
    let response = Client::connect(address)?.request(request)?;
    println!("{:?}", <Payload as Codec>::decode(&response.payload)?.value);
    Ok(())
}
