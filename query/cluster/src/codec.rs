//! The codec of plans over traces: scans and functions of esatto-query, and all that Ballista has.

use std::path::PathBuf;
use std::sync::Arc;

use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::common::{Result, exec_err};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use esatto_query::TracePool;
use esatto_query::remote::{function, traces_of_function};

use crate::{scan, wire};

/// The codec.
#[derive(Debug)]
pub(crate) struct TraceCodec {
    pool: Arc<TracePool>,
    /// The folder in which relative paths of traces begin.
    folder: PathBuf,
    ballista: BallistaPhysicalExtensionCodec,
}

impl TraceCodec {
    /// Makes a codec. Traces of decoded plans are opened in the pool.
    pub(crate) fn new(pool: Arc<TracePool>, folder: PathBuf) -> Self {
        Self { pool, folder, ballista: BallistaPhysicalExtensionCodec::default() }
    }
}

impl PhysicalExtensionCodec for TraceCodec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if wire::is_scan(bytes) {
            return Ok(scan::plan(wire::decode_scan(bytes, &self.pool)?));
        }
        self.ballista.try_decode(bytes, inputs, context, converter)
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        match scan::of_plan(&*node) {
            Some(scan) => wire::encode_scan(&scan, bytes),
            None => self.ballista.try_encode(node, bytes, converter),
        }
    }

    fn try_decode_udf(&self, name: &str, bytes: &[u8]) -> Result<Arc<ScalarUDF>> {
        let traces = wire::decode_function(bytes, &self.pool)?;
        match function(name, &Arc::new(traces)) {
            Some(function) => Ok(Arc::new(function)),
            None => exec_err!("there is no function '{name}' here"),
        }
    }

    fn try_encode_udf(&self, function: &ScalarUDF, bytes: &mut Vec<u8>) -> Result<()> {
        match traces_of_function(function) {
            Some(traces) if traces.are_of_lake() => {
                exec_err!("the clocks of a lake, for '{}', are on one machine", function.name())
            }
            Some(traces) => wire::encode_function(traces, traces.folder().unwrap_or(&self.folder), bytes),
            None => Ok(()),
        }
    }
}
