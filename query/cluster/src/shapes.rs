//! Shapes of plans that Ballista runs wrongly or not at all. Most are changed into others with the
//! same rows, the rest runs here.
//!
//! `tests/cluster/shapes.sql` has statements of all these shapes, whose rows are compared with
//! those of a run without a cluster.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::Schema;
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::common::{JoinType, Result};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::streaming::StreamingTableExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties as _};

/// Returns the reason why a plan has to run here.
pub(crate) fn unfit(plan: &Arc<dyn ExecutionPlan>) -> Option<String> {
    if plan.is::<StreamingTableExec>() {
        return Some("table functions and lists of tables work on one machine".to_owned());
    }
    if plan.is::<RecursiveQueryExec>() {
        return Some("recursive queries work on one machine".to_owned());
    }
    if plan.downcast_ref::<NestedLoopJoinExec>().is_some_and(|join| *join.join_type() == JoinType::Full) {
        return Some("a full join by comparisons needs all rows of both sides on one machine".to_owned());
    }
    plan.children().into_iter().find_map(unfit)
}

type Changed = Transformed<Arc<dyn ExecutionPlan>>;

/// Changes a plan, so that Ballista runs it correctly.
pub(crate) fn fit(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let fitted = plan.transform_up(|plan| {
        if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
            return swapped_join(&plan, join);
        }
        if plan.is::<UnionExec>() {
            return merged_branches(&plan);
        }
        if plan.is::<PlaceholderRowExec>() || plan.is::<EmptyExec>() {
            return Ok(Transformed::yes(rows_of_no_table(&plan)?));
        }
        Ok(Transformed::no(plan))
    })?;
    Ok(fitted.data)
}

/// Swaps the sides of a join by comparisons, if it returns rows of its left side without a partner.
/// All tasks have the left side, and each a part of the right one: none of them knows that a row of
/// the left side has no partner at all.
fn swapped_join(plan: &Arc<dyn ExecutionPlan>, join: &NestedLoopJoinExec) -> Result<Changed> {
    let depends_on_all = match join.join_type() {
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => true,
        JoinType::Inner | JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => false,
        // It does not run on the cluster.
        JoinType::Full => false,
    };
    if !depends_on_all {
        return Ok(Transformed::no(Arc::clone(plan)));
    }
    let left = match join.left().downcast_ref::<CoalescePartitionsExec>() {
        Some(merged) if merged.fetch().is_none() => Arc::clone(merged.input()),
        _ => Arc::clone(join.left()),
    };
    let right = Arc::new(CoalescePartitionsExec::new(Arc::clone(join.right())));
    let plan = with_children(plan, vec![left, right])?;
    match plan.downcast_ref::<NestedLoopJoinExec>() {
        Some(join) => Ok(Transformed::yes(join.swap_inputs()?)),
        None => Ok(Transformed::no(plan)),
    }
}

/// Returns the row that stands for no table, or no rows, as rows in memory. Ballista takes these
/// for tasks without a part in such a branch of a union, and then misses the end of the tasks,
/// because only one of both has metrics: the query would never end.
fn rows_of_no_table(plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let mut schema = plan.schema();
    let rows = if plan.is::<PlaceholderRowExec>() {
        // Its columns have no values, whatever the schema says.
        let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let columns = schema.fields().iter().map(|field| new_null_array(field.data_type(), 1)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        vec![RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options)?]
    } else {
        Vec::new()
    };
    Ok(DataSourceExec::from_data_source(MemorySourceConfig::try_new(&[rows], schema, None)?))
}

fn with_children(
    plan: &Arc<dyn ExecutionPlan>,
    children: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    Arc::clone(plan).replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}

/// Merges the rows of branches that are sorted. A task that gets no partition of a branch would
/// have to sort nothing, on which the executors of debug builds panic.
fn merged_branches(plan: &Arc<dyn ExecutionPlan>) -> Result<Changed> {
    let mut is_changed = false;
    let branch = |branch: &Arc<dyn ExecutionPlan>| -> Arc<dyn ExecutionPlan> {
        if !sorts_in_task(branch) {
            return Arc::clone(branch);
        }
        is_changed = true;
        match branch.output_ordering() {
            Some(order) => Arc::new(SortPreservingMergeExec::new(order.clone(), Arc::clone(branch))),
            None => Arc::new(CoalescePartitionsExec::new(Arc::clone(branch))),
        }
    };
    let branches = plan.children().into_iter().map(branch).collect();
    if !is_changed {
        return Ok(Transformed::no(Arc::clone(plan)));
    }
    Ok(Transformed::yes(with_children(plan, branches)?))
}

/// Returns whether the task that has this part of a plan sorts.
fn sorts_in_task(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let begins_task =
        plan.is::<SortPreservingMergeExec>() || plan.is::<CoalescePartitionsExec>() || plan.is::<RepartitionExec>();
    !begins_task && (plan.is::<SortExec>() || plan.children().into_iter().any(sorts_in_task))
}
