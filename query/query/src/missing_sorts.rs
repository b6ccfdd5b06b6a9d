//! Sorts that DataFusion's plans lack.
//!
//! Now and then the physical optimizer takes a column for sorted, or for constant, that is not so
//! any more when the plan is complete. It then refuses its own plan. Here the sort that is missing
//! is put into it.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties as _, replace_children_if_necessary};

/// Sorts the inputs of operators that need an order and do not have it. Runs before the check of
/// the plan.
#[derive(Debug)]
pub(crate) struct MissingSorts;

impl PhysicalOptimizerRule for MissingSorts {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(plan.transform_up(with_sorts)?.data)
    }

    fn name(&self) -> &str {
        "MissingSorts"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn with_sorts(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let mut is_changed = false;
    let mut inputs: Vec<Arc<dyn ExecutionPlan>> = node.children().into_iter().map(Arc::clone).collect();
    for (input, order) in inputs.iter_mut().zip(node.required_input_ordering()) {
        let Some(order) = order.map(|order| order.into_single()) else { continue };
        if input.equivalence_properties().ordering_satisfy_requirement(order.clone())? {
            continue;
        }
        let Some(order) = LexOrdering::new(order.into_iter().map(Into::into)) else { continue };
        let has_parts = input.output_partitioning().partition_count() > 1;
        let sort = SortExec::new(order, Arc::clone(input)).with_preserve_partitioning(has_parts);
        *input = Arc::new(sort);
        is_changed = true;
    }
    if is_changed {
        Ok(Transformed::yes(replace_children_if_necessary(node, inputs)?))
    } else {
        Ok(Transformed::no(node))
    }
}
