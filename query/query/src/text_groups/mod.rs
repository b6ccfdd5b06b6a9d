//! Groups of one text: `GROUP BY name`, the most usual question about a trace.
//!
//! DataFusion hashes and compares the text of each row, which is two thirds of the time of such a
//! statement. Here the first stage of the aggregation, whose results DataFusion merges, knows most
//! texts by their places in memory ([`numbers`]).

mod numbers;

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray as _, BooleanArray, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::config::ConfigOptions;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, InputOrderMode, PlanProperties};
use futures::{StreamExt as _, TryStreamExt as _};

use numbers::TextNumbers;

/// Rows after which groups are passed on, if they are hardly fewer than the rows.
const TRIAL_ROWS: usize = 100_000;

/// Replaces the first stage of aggregations by one text.
#[derive(Debug)]
pub(crate) struct TextGroups;

impl PhysicalOptimizerRule for TextGroups {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let replaced = plan.transform_down(|node| {
            let Some(aggregate) = node.downcast_ref::<AggregateExec>() else { return Ok(Transformed::no(node)) };
            match replace(aggregate)? {
                Some(stage) => Ok(Transformed::yes(stage)),
                None => Ok(Transformed::no(node)),
            }
        })?;
        Ok(replaced.data)
    }

    fn name(&self) -> &str {
        "TextGroups"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns what runs instead of an aggregation; `None` if it stays as it is.
fn replace(aggregate: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if !is_by_one_text(aggregate)? {
        return Ok(None);
    }
    let stage = |aggregate: AggregateExec| -> Arc<dyn ExecutionPlan> { Arc::new(TextGroupsExec(Arc::new(aggregate))) };
    let last = match aggregate.mode() {
        AggregateMode::Partial => return Ok(Some(stage(aggregate.clone()))),
        AggregateMode::Single => AggregateMode::Final,
        AggregateMode::SinglePartitioned => AggregateMode::FinalPartitioned,
        _ => return Ok(None),
    };
    // An aggregation of one stage becomes one of two.
    let groups = aggregate.group_expr();
    let (functions, input_schema) = (aggregate.aggr_expr().to_vec(), aggregate.input_schema());
    let first = AggregateExec::try_new(
        AggregateMode::Partial,
        groups.clone(),
        functions.clone(),
        aggregate.filter_expr().to_vec(),
        Arc::clone(aggregate.input()),
        Arc::clone(&input_schema),
    )?;
    let (first, filters) = (stage(first), vec![None; functions.len()]);
    let last = AggregateExec::try_new(last, groups.as_final(), functions, filters, first, input_schema)?;
    Ok((last.schema() == aggregate.schema()).then(|| Arc::new(last) as Arc<dyn ExecutionPlan>))
}

fn is_by_one_text(aggregate: &AggregateExec) -> Result<bool> {
    let groups = aggregate.group_expr();
    let [(group, _)] = groups.expr() else { return Ok(false) };
    let is_plain = |function: &Arc<AggregateFunctionExpr>| {
        function.order_bys().is_empty() && !function.is_distinct() && function.groups_accumulator_supported()
    };
    Ok(groups.is_single()
        && group.data_type(&aggregate.input().schema())? == DataType::Utf8View
        && *aggregate.input_order_mode() == InputOrderMode::Linear
        && aggregate.limit_options().is_none()
        && aggregate.dynamic_expressions_produced().is_empty()
        && aggregate.aggr_expr().iter().all(is_plain))
}

/// The first stage of an aggregation by one text. All but its work is that of DataFusion's.
#[derive(Debug)]
struct TextGroupsExec(Arc<AggregateExec>);

impl DisplayAs for TextGroupsExec {
    fn fmt_as(&self, form: DisplayFormatType, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("TextGroupsExec: ")?;
        self.0.fmt_as(form, f)
    }
}

impl ExecutionPlan for TextGroupsExec {
    fn name(&self) -> &str {
        "TextGroupsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.0.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.0.children()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.0.apply_expressions(f)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let aggregate: Arc<dyn ExecutionPlan> = Arc::<AggregateExec>::clone(&self.0);
        let replaced = datafusion::physical_plan::replace_children_if_necessary(aggregate, children)?;
        let replaced = replaced.downcast_ref::<AggregateExec>();
        let replaced = replaced.ok_or_else(|| internal_datafusion_err!("an aggregation stays one"))?;
        Ok(Arc::new(Self(Arc::new(replaced.clone()))))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.0.input().execute(partition, Arc::clone(&context))?;
        let consumer = MemoryConsumer::new(format!("TextGroups[{partition}]")).with_can_spill(true);
        let groups = Groups::new(&self.0, consumer.register(context.memory_pool()))?;
        let rows_of_batch = context.session_config().batch_size();
        let state = (input, groups, VecDeque::new(), false);
        let batches =
            futures::stream::try_unfold(state, move |(mut input, mut groups, mut out, mut is_over)| async move {
                while out.is_empty() && !is_over {
                    match input.next().await {
                        Some(batch) => {
                            groups.add(&batch?)?;
                            if groups.is_full()? {
                                out = groups.take(rows_of_batch)?;
                            }
                        }
                        None => {
                            is_over = true;
                            out = groups.take(rows_of_batch)?;
                        }
                    }
                }
                let batch: Option<RecordBatch> = out.pop_front();
                Ok(batch.map(|batch| (batch, (input, groups, out, is_over))))
            });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches.into_stream())))
    }
}

/// An aggregate function, what it is about, and its filter.
struct Function {
    arguments: Vec<Arc<dyn PhysicalExpr>>,
    filter: Option<Arc<dyn PhysicalExpr>>,
    values: Box<dyn GroupsAccumulator>,
}

/// The groups of a partition.
struct Groups {
    text: Arc<dyn PhysicalExpr>,
    texts: TextNumbers,
    functions: Vec<Function>,
    schema: SchemaRef,
    memory: MemoryReservation,
    /// Numbers of the groups of a batch's rows.
    numbers: Vec<usize>,
    rows: usize,
}

impl Groups {
    fn new(aggregate: &AggregateExec, memory: MemoryReservation) -> Result<Self> {
        let text = Arc::clone(&aggregate.group_expr().expr()[0].0);
        let functions = aggregate.aggr_expr().iter().zip(aggregate.filter_expr());
        let functions = functions.map(|(function, filter)| {
            let values = function.create_groups_accumulator()?;
            Ok(Function { arguments: function.expressions(), filter: filter.clone(), values })
        });
        let (functions, schema) = (functions.collect::<Result<_>>()?, aggregate.schema());
        Ok(Self { text, texts: TextNumbers::new(), functions, schema, memory, numbers: Vec::new(), rows: 0 })
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let rows = batch.num_rows();
        let texts = self.text.evaluate(batch)?.into_array(rows)?;
        self.texts.add(texts.as_string_view(), &mut self.numbers)?;
        self.rows += rows;
        let groups = self.texts.len();
        for function in &mut self.functions {
            let arguments: Vec<ArrayRef> = function
                .arguments
                .iter()
                .map(|argument| argument.evaluate(batch)?.into_array(rows))
                .collect::<Result<_>>()?;
            let filter = function.filter.as_ref().map(|filter| filter.evaluate(batch)?.into_array(rows)).transpose()?;
            let filter: Option<&BooleanArray> = filter.as_ref().map(|filter| filter.as_boolean());
            function.values.update_batch(&arguments, &self.numbers, filter, groups)?;
        }
        Ok(())
    }

    /// Returns whether the groups have to go: they do not fit into the memory, or hardly any is
    /// met twice.
    fn is_full(&mut self) -> Result<bool> {
        let groups = self.texts.len();
        if self.rows > TRIAL_ROWS && groups > self.rows / 10 * 8 {
            return Ok(true);
        }
        let values: usize = self.functions.iter().map(|function| function.values.size()).sum();
        let numbers = self.numbers.capacity() * size_of::<usize>();
        Ok(self.memory.try_resize(self.texts.size() + values + numbers).is_err() && groups > 0)
    }

    /// Returns the groups so far, and begins anew. The next stage merges those of one text.
    fn take(&mut self, rows_of_batch: usize) -> Result<VecDeque<RecordBatch>> {
        let rows = self.texts.len();
        if rows == 0 {
            return Ok(VecDeque::new());
        }
        let mut columns = vec![self.texts.take()];
        for function in &mut self.functions {
            columns.extend(function.values.state(EmitTo::All)?);
        }
        self.memory.free();
        self.rows = 0;
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        let starts = (0..rows).step_by(rows_of_batch.max(1));
        Ok(starts.map(|start| batch.slice(start, rows_of_batch.min(rows - start))).collect())
    }
}
