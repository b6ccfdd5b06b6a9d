//! The planner of a session with a cluster: it decides where a plan runs.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::context::{QueryPlanner, SessionState};
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::{LogicalPlan, TableScan};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner as _};
use datafusion_proto::physical_plan::AsExecutionPlan as _;
use datafusion_proto::protobuf::PhysicalPlanNode;
use esatto_query::remote::ScanBuilder;
use futures::TryStreamExt as _;
use prost::Message as _;

use crate::cluster::{Cluster, keep_catalog};
use crate::{job, scan, shapes, subqueries};

/// Bytes of a plan that a scheduler takes, with its default settings.
const MAX_PLAN_BYTES: usize = 15 << 20;

#[derive(Debug)]
pub(crate) struct ClusterPlanner {
    cluster: Arc<Cluster>,
}

impl ClusterPlanner {
    pub(crate) fn new(cluster: Arc<Cluster>) -> Self {
        Self { cluster }
    }

    /// Plans a statement for the cluster.
    async fn plan_remotely(&self, plan: &LogicalPlan, state: &SessionState) -> Result<Arc<dyn ExecutionPlan>> {
        let folder = self.cluster.folder.clone();
        let builder = ScanBuilder::new(move |of, limit| Ok(scan::plan(scan::split(of, &folder, limit))));
        let config = keep_catalog(state.config().clone().with_extension(Arc::new(builder)));
        let state = SessionStateBuilder::new_from_existing(state.clone()).with_config(config).build();
        shapes::fit(DefaultPhysicalPlanner::default().create_physical_plan(plan, &state).await?)
    }

    /// Returns the bytes of a plan for the cluster, or the reason why it has to run here.
    fn encode(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<u8>, String> {
        if let Some(reason) = shapes::unfit(plan) {
            return Err(reason);
        }
        let node = PhysicalPlanNode::try_from_physical_plan(Arc::clone(plan), &self.cluster.codec)
            .map_err(|error| format!("a part of its plan cannot be sent: {}", first_line(&error)))?;
        let bytes = node.encode_to_vec();
        if bytes.len() > MAX_PLAN_BYTES {
            let (size, limit) = (bytes.len() >> 20, MAX_PLAN_BYTES >> 20);
            return Err(format!("its plan has {size} MiB, more than the {limit} MiB that a scheduler takes"));
        }
        Ok(bytes)
    }
}

#[async_trait]
impl QueryPlanner for ClusterPlanner {
    async fn create_physical_plan(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let here = DefaultPhysicalPlanner::default();
        let state = session.as_any().downcast_ref::<SessionState>();
        let Some(state) = state.filter(|_| reads_tables(plan)) else {
            return here.create_physical_plan(plan, session).await;
        };
        if matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_)) {
            return self.plan_remotely(plan, state).await;
        }
        let plan = &subqueries::evaluate(plan, state).await?;
        let remote = self.plan_remotely(plan, state).await?;
        match self.encode(&remote) {
            Ok(bytes) => Ok(Arc::new(ClusterExec::new(Arc::clone(&self.cluster), bytes, &remote))),
            Err(reason) => {
                self.cluster.note(format!("a statement ran here and not on the cluster: {reason}"));
                here.create_physical_plan(plan, &self.cluster.local_state(state)).await
            }
        }
    }
}

/// The planner of sessions whose plans run here. Tables that plan statements of their own, such as
/// the sides of a span join, must not send them elsewhere: their settings are not those of
/// Ballista, whose scheduler would fail on a dynamic filter, and never end the job.
#[derive(Debug)]
pub(crate) struct LocalPlanner;

#[async_trait]
impl QueryPlanner for LocalPlanner {
    async fn create_physical_plan(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        DefaultPhysicalPlanner::default().create_physical_plan(plan, session).await
    }
}

/// Returns whether a plan reads tables other than the lists of tables and settings.
fn reads_tables(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(TableScan { table_name, .. }) = node {
            found |= table_name.schema() != Some("information_schema");
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    walked.is_ok() && found
}

fn first_line(error: &DataFusionError) -> String {
    let text = error.strip_backtrace();
    let line = text.lines().next().unwrap_or_default();
    // The plan itself would follow.
    line.split(". Plan: ").next().unwrap_or_default().chars().take(300).collect()
}

/// A plan that runs on the cluster.
#[derive(Debug)]
struct ClusterExec {
    cluster: Arc<Cluster>,
    bytes: Vec<u8>,
    has_traces: bool,
    properties: Arc<PlanProperties>,
}

impl ClusterExec {
    fn new(cluster: Arc<Cluster>, bytes: Vec<u8>, plan: &Arc<dyn ExecutionPlan>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(plan.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self { cluster, bytes, has_traces: has_traces(plan), properties: Arc::new(properties) }
    }
}

fn has_traces(plan: &Arc<dyn ExecutionPlan>) -> bool {
    scan::of_plan(&**plan).is_some() || plan.children().into_iter().any(has_traces)
}

impl DisplayAs for ClusterExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "ClusterExec: scheduler={}", self.cluster.address)
    }
}

impl ExecutionPlan for ClusterExec {
    fn name(&self) -> &str {
        "ClusterExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema: SchemaRef = self.schema();
        let settings = job::settings(context.session_config());
        let job = job::run(Arc::clone(&self.cluster), self.bytes.clone(), settings, self.has_traces);
        let rows = futures::stream::once(job).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}
