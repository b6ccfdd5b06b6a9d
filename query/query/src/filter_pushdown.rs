//! Filters that a scan takes to leave out parts of files.
//!
//! DataFusion's physical optimizer passes filters down by the names of columns. Where two columns
//! of a join have one name, as `trace_uuid` has in any join, a filter of one side can reach the
//! scan of the other, which then leaves out rows of an outer join. So scans take the filters that
//! the logical optimizer gives them, and the filters that DataFusion makes while it runs are passed
//! down only in plans in which no name occurs twice.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr_rewriter::unnormalize_col;
use datafusion::logical_expr::utils::conjunction;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

use crate::missing_sorts::MissingSorts;
use crate::text_groups::TextGroups;

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// Returns the rules of the physical optimizer. Plans that are not `is_local` run elsewhere, and
/// have operators of DataFusion only.
pub(crate) fn rules(is_local: bool) -> Vec<Rule> {
    let rules = |rule: Rule| -> Vec<Rule> {
        match rule.name() {
            "FilterPushdown" => Vec::new(),
            "FilterPushdown(Post)" => vec![Arc::new(UnlessNamesRepeat(rule))],
            "aggregate_statistics" => vec![Arc::new(UnlessFiltered(rule))],
            "SanityCheckPlan" if is_local => vec![Arc::new(MissingSorts), Arc::new(TextGroups), rule],
            "SanityCheckPlan" => vec![Arc::new(MissingSorts), rule],
            _ => vec![rule],
        }
    };
    PhysicalOptimizer::new().rules.into_iter().flat_map(rules).collect()
}

/// A rule for plans in which no name occurs twice.
#[derive(Debug)]
struct UnlessNamesRepeat(Rule);

impl PhysicalOptimizerRule for UnlessNamesRepeat {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let mut repeats = false;
        plan.apply(|node| {
            let schema = node.schema();
            let mut seen = HashSet::new();
            repeats |= !schema.fields().iter().all(|field| seen.insert(field.name().as_str()));
            Ok(if repeats { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if repeats { Ok(plan) } else { self.0.optimize(plan, config) }
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// A rule for plans whose aggregates have no filter. The one that takes counts from statistics
/// forgets the columns of filtered counts.
#[derive(Debug)]
struct UnlessFiltered(Rule);

impl PhysicalOptimizerRule for UnlessFiltered {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let is_filtered = |node: &Arc<dyn ExecutionPlan>| {
            let aggregate = node.downcast_ref::<AggregateExec>();
            aggregate.is_some_and(|aggregate| aggregate.filter_expr().iter().any(Option::is_some))
        };
        if plan.exists(|node| Ok(is_filtered(node)))? { Ok(plan) } else { self.0.optimize(plan, config) }
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Returns the condition of a scan's filters; `None` if there is none that a scan can use.
pub(crate) fn predicate(state: &dyn Session, filters: &[Expr], schema: &DFSchema) -> Option<Arc<dyn PhysicalExpr>> {
    let is_plain = |filter: &&Expr| {
        let has_query = |expr: &Expr| {
            Ok(matches!(
                expr,
                Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::OuterReferenceColumn(..)
            ))
        };
        !filter.is_volatile() && filter.exists(has_query).is_ok_and(|has_query| !has_query)
    };
    // The filter may name a column with the name of the table.
    let condition = conjunction(filters.iter().filter(is_plain).cloned().map(unnormalize_col))?;
    state.create_physical_expr(condition, schema).ok()
}
