//! `extract_arg` over a lake: joins with the table `args`.
//!
//! The rows below an operator get a column for each call in its expressions: a left join on the set
//! and the key. The engine joins as it joins any tables, within the memory of the query, and a
//! cluster of Ballista needs no program of this crate. A set has a key once, so a row stays one.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, Result, ScalarValue, plan_err};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Operator, binary_expr, cast, col, lit, when};
use esatto_lake::NUMBER_COLUMN;
use esatto_tables::ROW_BITS;

use crate::functions::{ArgCall, arg_call, arg_text};
use crate::lake_table::{LakeTable, LakeTraces};

/// Replaces the calls in a plan, and in the subqueries in it.
pub(crate) fn rewrite(plan: LogicalPlan, lake: &Arc<LakeTraces>) -> Result<LogicalPlan> {
    let mut joins = Joins { lake, made: 0 };
    let rewritten = plan.transform_up_with_subqueries(|mut node| {
        let before = Arc::clone(node.schema());
        let mut is_changed = false;
        // The set of a call can come from another call.
        while let Some(call) = innermost_call(&node)? {
            node = joins.replace(&node, &call)?;
            is_changed = true;
        }
        if !is_changed {
            return Ok(Transformed::no(node));
        }
        // An operator that passes its rows on has the new columns.
        if !node.schema().logically_equivalent_names_and_types(&before) {
            node = LogicalPlanBuilder::from(node).project(columns(&before))?.build()?;
        }
        Ok(Transformed::yes(node))
    })?;
    Ok(rewritten.data)
}

/// Returns a call whose arguments have no calls.
fn innermost_call(node: &LogicalPlan) -> Result<Option<Expr>> {
    let mut found = None;
    node.apply_expressions(|expr| {
        expr.apply(|expr| {
            let Some(call) = arg_call(expr) else { return Ok(TreeNodeRecursion::Continue) };
            let is_call = |expr: &Expr| Ok(arg_call(expr).is_some());
            if call.set.exists(is_call)? || call.key.exists(is_call)? {
                return Ok(TreeNodeRecursion::Continue);
            }
            found = Some(expr.clone());
            Ok(TreeNodeRecursion::Stop)
        })
    })?;
    Ok(found)
}

fn columns(schema: &DFSchema) -> Vec<Expr> {
    schema.iter().map(|field| Expr::Column(Column::from(field))).collect()
}

struct Joins<'l> {
    lake: &'l Arc<LakeTraces>,
    /// Joins so far, whose columns have numbers.
    made: usize,
}

impl Joins<'_> {
    /// Replaces all calls that are equal to `expr` in the expressions of an operator.
    fn replace(&mut self, node: &LogicalPlan, expr: &Expr) -> Result<LogicalPlan> {
        let call = arg_call(expr).expect("it is a call");
        let mut inputs: Vec<LogicalPlan> = node.inputs().into_iter().cloned().collect();
        let value = match call.data_type {
            // No trace has such an argument.
            DataType::Null => lit(ScalarValue::Null),
            _ => {
                let needed = expr.column_refs();
                let has_all = |input: &LogicalPlan| needed.iter().all(|column| input.schema().has_column(column));
                let is_outer = |expr: &Expr| Ok(matches!(expr, Expr::OuterReferenceColumn(..)));
                let at = if expr.exists(is_outer)? { None } else { inputs.iter().position(has_all) };
                let Some(at) = at else {
                    return plan_err!(
                        "{expr}: over a lake, the arguments of this function must come from one table of the same \
                         SELECT; join the table 'args' on arg_set_id and key"
                    );
                };
                let value = format!("__arg_{}", self.made);
                inputs[at] = self.join(inputs[at].clone(), &call, &value)?;
                self.made += 1;
                Expr::Column(Column::from_name(value))
            }
        };
        // The names of other operators are those of their inputs.
        let has_names = matches!(node, LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Window(_));
        let names = NamePreserver::new(node);
        let exprs = node.expressions().into_iter().map(|of_node| {
            let name = has_names.then(|| names.save(&of_node));
            let is_call =
                |part: Expr| Ok(if part == *expr { Transformed::yes(value.clone()) } else { Transformed::no(part) });
            let replaced = of_node.transform_up(is_call)?.data;
            Ok(match name {
                Some(name) => name.restore(replaced),
                None => replaced,
            })
        });
        let exprs = exprs.collect::<Result<Vec<Expr>>>()?;
        node.with_new_exprs(exprs, inputs)
    }

    /// Adds the value of a call to the rows of a plan, as the last column.
    fn join(&self, rows: LogicalPlan, call: &ArgCall<'_>, value: &str) -> Result<LogicalPlan> {
        let mut after = columns(rows.schema());
        let name = |what: &str| format!("__{what}_{}", self.made);
        let number = |expr: &Expr| cast(expr.clone(), DataType::Int64);
        let text = |expr: &Expr| cast(expr.clone(), DataType::Utf8View);
        let mut left = after.clone();
        left.push(number(call.set).alias(name("set")));
        // The trace says the same, and leaves out the files of others before they are opened.
        let trace = binary_expr(number(call.set), Operator::BitwiseShiftRight, lit(i64::from(ROW_BITS)));
        left.push(trace.alias(name("trace")));
        let table = esatto_tables::table("args").expect("there are arguments");
        let source = provider_as_source(Arc::new(LakeTable::new(Arc::clone(self.lake), table)));
        let mut args = LogicalPlanBuilder::scan(table.name, source, None)?;
        let mut right = vec![col("arg_set_id").alias(name("set_of_arg")), call.value().alias(value)];
        right.push(col(NUMBER_COLUMN).alias(name("trace_of_arg")));
        let mut on = vec![(name("set"), name("set_of_arg")), (name("trace"), name("trace_of_arg"))];
        match call.literal {
            Some(key) => args = args.filter(col("key").eq(lit(ScalarValue::Utf8View(Some(key.to_owned())))))?,
            None => {
                left.push(text(call.key).alias(name("key")));
                right.push(col("key").alias(name("key_of_arg")));
                on.push((name("key"), name("key_of_arg")));
            }
        }
        let args = args.project(right)?.build()?;
        let (ours, theirs): (Vec<_>, Vec<_>) = on.into_iter().unzip();
        let on =
            (ours.into_iter().map(Column::from_name).collect(), theirs.into_iter().map(Column::from_name).collect());
        let joined = LogicalPlanBuilder::from(rows).project(left)?.join(args, JoinType::Left, on, None)?;
        after.push(Expr::Column(Column::from_name(value)));
        joined.project(after)?.build()
    }
}

impl ArgCall<'_> {
    /// Returns the value, from the columns of the table `args`.
    fn value(&self) -> Expr {
        let (int, real, string) = (col("int_value"), col("real_value"), col("string_value"));
        let first = |choices: Vec<Expr>| {
            let mut choices = choices.into_iter().rev();
            let last = choices.next().unwrap_or_else(|| lit(ScalarValue::Null));
            choices.try_fold(last, |rest, choice| when(choice.clone().is_not_null(), choice).otherwise(rest))
        };
        let made = match self.data_type {
            DataType::Int64 => Ok(int),
            DataType::Float64 => first(vec![cast(int, DataType::Float64), real]),
            _ => {
                let mut choices = vec![string, cast(int, DataType::Utf8View)];
                if self.may_be_real {
                    choices.push(arg_text().call(vec![real]));
                }
                first(choices)
            }
        };
        made.expect("a choice has all its parts")
    }
}
