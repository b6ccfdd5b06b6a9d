//! Tests with all frames and calls of the conversations under `tests/captures`.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use esatto_protozero::Owned;
use esatto_schema::*;

use crate::{canonical, dynamic, unknown_fields};

/// Fields that old clients sent and that the schema does not list any more.
const FORGOTTEN: &[&str] = &["perfetto.protos.InitializeConnectionRequest 5"];

/// Decodes and encodes a value, and compares it with prost-reflect's message for the same bytes.
fn survives<T: Owned>(name: &str, bytes: &[u8]) {
    let value = T::decode(bytes).unwrap();
    let encoded = value.encode();
    assert_eq!(T::decode(&encoded).as_ref(), Ok(&value), "{name}");
    assert_eq!(canonical(name, &encoded), canonical(name, bytes), "{name}");
    for field in unknown_fields(&dynamic(name, bytes)) {
        assert!(FORGOTTEN.contains(&field.as_str()), "{field}");
    }
}

/// Checks a request (true) or a reply (false) with the type of its method.
fn check(method: &str, request: bool, bytes: &[u8]) {
    macro_rules! methods {
        ($($method:ident $request:ident $reply:ident;)*) => {
            match (method, request) {
                $((stringify!($method), true) => survives::<$request>(stringify!($request), bytes),
                (stringify!($method), false) => survives::<$reply>(stringify!($reply), bytes),)*
                _ => panic!("unknown method {method}"),
            }
        };
    }
    methods! {
        EnableTracing EnableTracingRequest EnableTracingResponse;
        DisableTracing DisableTracingRequest DisableTracingResponse;
        ReadBuffers ReadBuffersRequest ReadBuffersResponse;
        FreeBuffers FreeBuffersRequest FreeBuffersResponse;
        Flush FlushRequest FlushResponse;
        StartTracing StartTracingRequest StartTracingResponse;
        ChangeTraceConfig ChangeTraceConfigRequest ChangeTraceConfigResponse;
        Detach DetachRequest DetachResponse;
        Attach AttachRequest AttachResponse;
        GetTraceStats GetTraceStatsRequest GetTraceStatsResponse;
        ObserveEvents ObserveEventsRequest ObserveEventsResponse;
        QueryServiceState QueryServiceStateRequest QueryServiceStateResponse;
        QueryCapabilities QueryCapabilitiesRequest QueryCapabilitiesResponse;
        SaveTraceForBugreport SaveTraceForBugreportRequest SaveTraceForBugreportResponse;
        CloneSession CloneSessionRequest CloneSessionResponse;
        InitializeConnection InitializeConnectionRequest InitializeConnectionResponse;
        RegisterDataSource RegisterDataSourceRequest RegisterDataSourceResponse;
        UnregisterDataSource UnregisterDataSourceRequest UnregisterDataSourceResponse;
        CommitData CommitDataRequest CommitDataResponse;
        GetAsyncCommand GetAsyncCommandRequest GetAsyncCommandResponse;
        RegisterTraceWriter RegisterTraceWriterRequest RegisterTraceWriterResponse;
        UnregisterTraceWriter UnregisterTraceWriterRequest UnregisterTraceWriterResponse;
        NotifyDataSourceStarted NotifyDataSourceStartedRequest NotifyDataSourceStartedResponse;
        NotifyDataSourceStopped NotifyDataSourceStoppedRequest NotifyDataSourceStoppedResponse;
        ActivateTriggers ActivateTriggersRequest ActivateTriggersResponse;
        Sync SyncRequest SyncResponse;
        UpdateDataSource UpdateDataSourceRequest UpdateDataSourceResponse;
        InitRelay InitRelayRequest InitRelayResponse;
        SyncClock SyncClockRequest SyncClockResponse;
    }
}

/// Returns the frames of a captured stream: four bytes of length, little endian, and an `IPCFrame`.
/// There is no file if a peer has sent nothing.
fn frames(path: &Path) -> Vec<IPCFrame> {
    let stream = fs::read(path).unwrap_or_default();
    let mut rest = stream.as_slice();
    let mut frames = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk() {
        let (frame, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        survives::<IPCFrame>("IPCFrame", frame);
        frames.push(IPCFrame::decode(frame).unwrap());
        rest = after;
    }
    frames
}

#[test]
fn frames_requests_and_replies_survive() {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/captures");
    let mut methods = BTreeSet::new();
    for run in fs::read_dir(captures).unwrap().map(|run| run.unwrap().path()).filter(|run| run.is_dir()) {
        for requests in fs::read_dir(&run).unwrap().map(|entry| entry.unwrap().path()) {
            let Some(connection) = requests.to_string_lossy().strip_suffix(".c2s.bin").map(str::to_owned) else {
                continue;
            };
            let replies = frames(Path::new(&format!("{connection}.s2c.bin")));
            let bound = replies.iter().filter_map(|frame| frame.msg_bind_service_reply.as_ref());
            let names: HashMap<u32, String> = bound
                .flat_map(|reply| &reply.methods)
                .map(|method| (method.id.unwrap(), method.name.as_ref().unwrap().to_string()))
                .collect();
            let mut called = HashMap::new();
            for frame in frames(&requests) {
                let Some(call) = frame.msg_invoke_method else { continue };
                // A peer that has sent nothing has not named its methods either.
                let Some(name) = names.get(&call.method_id.unwrap()) else { continue };
                check(name, true, &call.args_proto.unwrap());
                called.insert(frame.request_id, name.clone());
                methods.insert(name.clone());
            }
            for frame in replies {
                let Some(reply) = frame.msg_invoke_method_reply else { continue };
                check(&called[&frame.request_id], false, &reply.reply_proto.unwrap_or_default());
            }
        }
    }
    assert!(methods.len() >= 15, "the captures hold many calls: {methods:?}");
}
