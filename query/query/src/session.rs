//! A session: tables, views and functions over traces, and the statements on them.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::AsArray as _;
use arrow::compute::cast;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::catalog::view::ViewTable;
use datafusion::common::{DataFusionError, ScalarValue, SchemaError};
use datafusion::datasource::MemTable;
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{ObjectType, Statement};
use esatto_lake::{Lake, TRACE_COLUMNS, TraceEntry};
use esatto_tables::ArgTypes;
use futures::FutureExt as _;

use crate::lake_clocks::LakeClocks;
use crate::lake_table::{LakeTable, LakeTraces};
use crate::needed_tables::have_kernel_events;
use crate::remote::Remote;
use crate::script::{Parameter, Parameters, Parsed, parameter_value, parse};
use crate::sql_error::SqlError;
use crate::trace_table::TraceTable;
use crate::traces::Traces;
use crate::views::{VIEWS, view};
use crate::{
    fallback, filter_pushdown, functions, lake_arguments, lake_clocks, memberships, single_groups, table_arguments,
    table_functions,
};

/// Options of a session.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Bytes of memory that queries may take, beside those of traces.
    pub memory_limit: usize,
    /// Threads that work on a query.
    pub threads: usize,
    /// Tables have columns that tell traces apart.
    pub has_trace_columns: bool,
    /// An engine that runs plans on other machines.
    pub remote: Option<Arc<dyn Remote>>,
}

impl Default for Options {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { memory_limit: 1 << 30, threads, has_trace_columns: false, remote: None }
    }
}

/// A session.
pub struct Session {
    context: SessionContext,
    traces: Arc<Traces>,
    /// Columns that tell traces apart.
    trace_columns: Vec<String>,
    aggregates: HashSet<String>,
    parameters: Mutex<Parameters>,
    views: Mutex<HashSet<&'static str>>,
    /// Statements that will be run, if their number is known.
    expected: AtomicUsize,
    remote: Option<Arc<dyn Remote>>,
}

/// A statement that has been parsed.
#[derive(Debug, Clone)]
pub struct Prepared(Parsed);

/// The rows that a statement returns.
#[non_exhaustive]
pub struct Answer {
    /// Names and types of the columns.
    pub schema: SchemaRef,
    /// The rows.
    pub rows: SendableRecordBatchStream,
}

impl core::fmt::Debug for Answer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Answer").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl core::fmt::Debug for Session {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Session").field("traces", &self.traces).finish_non_exhaustive()
    }
}

impl Session {
    /// Makes a session. No trace is opened.
    ///
    /// # Errors
    ///
    /// DataFusion cannot be set up.
    pub fn new(traces: Traces, options: &Options) -> Result<Self, SqlError> {
        let session = Self::without_tables(traces, options)?;
        for table in esatto_tables::tables() {
            let provider = TraceTable::new(Arc::clone(&session.traces), table, options.has_trace_columns);
            session.add_table(table.name, Arc::new(provider))?;
        }
        Ok(session)
    }

    /// Makes a session over a lake, whose catalogue has been read: it shows these traces.
    ///
    /// # Errors
    ///
    /// The lake cannot be used, or DataFusion cannot be set up.
    pub async fn of_lake(lake: &Lake, entries: Vec<TraceEntry>, options: &Options) -> Result<Self, SqlError> {
        let mut session = Self::without_tables(Traces::of_lake(), options)?;
        let failed = |error: DataFusionError| match error {
            DataFusionError::External(error) => SqlError::new(error.to_string()),
            error => SqlError::new(error.to_string()),
        };
        let traces = Arc::new(LakeTraces::new(lake, entries, &session.context).map_err(failed)?);
        session.traces.set_lake(&traces);
        session.trace_columns = traces.trace_fields().iter().map(|field| field.name().clone()).collect();
        for table in esatto_tables::tables().iter().filter(|table| esatto_lake::derived(table.name).is_none()) {
            session.add_table(table.name, Arc::new(LakeTable::new(Arc::clone(&traces), table)))?;
        }
        for derived in esatto_lake::DERIVED_TABLES {
            let table = esatto_tables::table(derived.name).expect("it is a table");
            let own = table.columns.iter().map(|column| column.name);
            let columns: Vec<&str> = own.chain(session.trace_columns.iter().map(String::as_str)).collect();
            let condition = derived.condition.map_or_else(String::new, |condition| format!(" where {condition}"));
            let select = format!("select \"{}\" from {}{condition}", columns.join("\", \""), derived.of);
            let plan = session.context.state().create_logical_plan(&select).await.map_err(failed)?;
            session.add_table(derived.name, Arc::new(ViewTable::new(plan, Some(select))))?;
        }
        let catalogue = esatto_lake::to_batch(traces.entries()).map_err(|error| SqlError::new(error.to_string()))?;
        let catalogue = MemTable::try_new(catalogue.schema(), vec![vec![catalogue]]).map_err(failed)?;
        session.add_table(esatto_lake::CATALOGUE, Arc::new(catalogue))?;
        Ok(session)
    }

    fn add_table(&self, name: &str, table: Arc<dyn TableProvider>) -> Result<(), SqlError> {
        let before = self.context.register_table(name, table);
        before.map(drop).map_err(|error| SqlError::new(error.to_string()))
    }

    fn without_tables(traces: Traces, options: &Options) -> Result<Self, SqlError> {
        let traces = Arc::new(traces);
        let has_trace_columns = options.has_trace_columns || traces.are_of_lake();
        let mut config = SessionConfig::new()
            .with_target_partitions(options.threads.max(1))
            .with_batch_size(esatto_tables::BATCH_ROWS)
            .with_information_schema(true);
        let parser = &mut config.options_mut().sql_parser;
        parser.collect_spans = true;
        // As in SQLite: NULL is the least value.
        parser.default_null_ordering = "nulls_min".to_owned();
        let pool = TrackConsumersPool::new(FairSpillPool::new(options.memory_limit), TOP_CONSUMERS);
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(pool)).build_arc();
        let runtime = runtime.map_err(|error| SqlError::new(error.to_string()))?;
        let builder = SessionStateBuilder::new().with_config(config).with_runtime_env(runtime).with_default_features();
        let builder = builder.with_physical_optimizer_rules(filter_pushdown::rules(options.remote.is_none()));
        let builder = match &options.remote {
            Some(remote) => remote.set_up(builder),
            None => builder,
        };
        let context = SessionContext::new_with_state(builder.build());
        for function in functions::all(&traces) {
            context.register_udf(function);
        }
        for (name, function) in table_functions::all(&traces, has_trace_columns) {
            context.register_udtf(name, function);
        }
        let aggregates = context.state().aggregate_functions().keys().cloned().collect();
        let trace_columns = TRACE_COLUMNS.iter().filter(|_| has_trace_columns).map(|(name, _)| (*name).to_owned());
        Ok(Self {
            context,
            traces,
            trace_columns: trace_columns.collect(),
            aggregates,
            parameters: Mutex::default(),
            views: Mutex::default(),
            expected: AtomicUsize::new(0),
            remote: options.remote.clone(),
        })
    }

    /// Sets the value of a parameter: a number if it looks like one, else a text.
    pub fn set_parameter(&self, name: &str, value: &str) {
        self.lock_parameters().insert(name.to_owned(), parameter_value(value));
    }

    fn lock_parameters(&self) -> MutexGuard<'_, Parameters> {
        self.parameters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the names of all tables and views, in alphabetical order.
    pub fn relations(&self) -> Vec<String> {
        let mut names = self.table_names();
        names.extend(VIEWS.iter().map(|view| view.name.to_owned()));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns the columns of a table or a view; `None` if there is none of this name. Those of the
    /// views of this crate are known only after the first statement that names them.
    pub fn columns(&self, relation: &str) -> Option<SchemaRef> {
        let schema = self.context.catalog("datafusion")?.schema("public")?;
        let name = schema.table_names().into_iter().find(|name| name.eq_ignore_ascii_case(relation))?;
        // Tables in memory are there at once.
        Some(schema.table(&name).now_or_never()?.ok()??.schema())
    }

    /// As [`Self::columns`], also for views that no statement has named yet.
    ///
    /// # Errors
    ///
    /// There is no table and no view of this name.
    pub async fn describe(&self, relation: &str) -> Result<SchemaRef, SqlError> {
        self.add_view(&relation.to_ascii_lowercase()).await?;
        let missing = || SqlError::new(format!("there is no table '{relation}'")).suggest(relation, &self.relations());
        self.columns(relation).ok_or_else(missing)
    }

    /// Returns the names of all functions, in alphabetical order.
    pub fn functions(&self) -> Vec<String> {
        let state = self.context.state();
        let scalar = state.scalar_functions().keys().chain(state.aggregate_functions().keys());
        let all = scalar.chain(state.window_functions().keys()).chain(state.table_functions().keys());
        let mut names: Vec<String> = all.cloned().collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns the traces.
    pub fn traces(&self) -> &Traces {
        &self.traces
    }

    /// Parses all statements of a text.
    ///
    /// # Errors
    ///
    /// The first mistake in the syntax, or a parameter without a value.
    pub fn prepare(&self, sql: &str) -> Result<Vec<Prepared>, SqlError> {
        Ok(parse(sql, &self.lock_parameters())?.into_iter().map(Prepared).collect())
    }

    /// Makes only the tables that these statements can see. Others may be run nevertheless: then
    /// traces are read again. Without effect on a cluster, whose executors know no script. Returns
    /// whether tables are left out.
    pub fn expect(&self, statements: &[Prepared]) -> bool {
        let leaves_out = self.remote.is_none() && !have_kernel_events(statements.iter().map(|prepared| &prepared.0));
        if leaves_out {
            self.traces.leave_out_kernel_events();
        }
        leaves_out
    }

    /// Promises that so many statements will be run, and no other: then the last one need not keep
    /// traces open. Others may be run nevertheless: then traces are read again.
    pub fn end_after(&self, statements: usize) {
        self.expected.store(statements, Ordering::Release);
    }

    /// As [`Self::prepare`], with further parameters for this text alone. Those of `?` and `$1`
    /// have the names 1, 2, and so on.
    ///
    /// # Errors
    ///
    /// As for [`Self::prepare`].
    pub fn prepare_with(
        &self,
        sql: &str,
        parameters: impl IntoIterator<Item = (String, Parameter)>,
    ) -> Result<Vec<Prepared>, SqlError> {
        let mut all = self.lock_parameters().clone();
        all.extend(parameters.into_iter().map(|(name, value)| (name, value.value())));
        Ok(parse(sql, &all)?.into_iter().map(Prepared).collect())
    }

    /// Runs a statement; `None` if it returns no rows.
    ///
    /// # Errors
    ///
    /// A name is wrong, or an operation fails.
    pub async fn run(&self, prepared: &Prepared) -> Result<Option<Answer>, SqlError> {
        let Parsed { statement, words, place, .. } = &prepared.0;
        check_kind(statement).map_err(|error| error.at(*place))?;
        if have_kernel_events([&prepared.0]) {
            self.traces.require_kernel_events();
        }
        for word in words {
            self.add_view(word).await?;
        }
        let is_elsewhere = self.remote.is_some() || self.traces.are_of_lake();
        if is_elsewhere && words.iter().any(|word| word == "extract_arg") && !self.traces.has_arg_types() {
            self.ask_arg_types().await.map_err(|error| self.sql_error(&error))?;
        }
        let mut statement = statement.clone();
        self.evaluate_arguments(&mut statement).await.map_err(|error| self.sql_error(&error))?;
        let one_less = |expected: usize| expected.checked_sub(1);
        let expected = self.expected.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less);
        self.traces.begin_statement(expected == Ok(1));
        let answer = self.plan_and_run(statement).await;
        answer.map_err(|error| self.sql_error(&error))
    }

    /// Makes an error of DataFusion an error of SQL.
    pub fn sql_error(&self, error: &DataFusionError) -> SqlError {
        SqlError::of_datafusion(error, &self.relations(), &self.functions())
    }

    fn table_names(&self) -> Vec<String> {
        let schemas = self.context.catalog("datafusion").and_then(|catalog| catalog.schema("public"));
        schemas.map(|schema| schema.table_names()).unwrap_or_default()
    }

    /// Evaluates the subqueries that are arguments of table functions, because DataFusion takes
    /// only constants there.
    async fn evaluate_arguments(&self, statement: &mut Statement) -> Result<(), DataFusionError> {
        for query in table_arguments::subqueries(statement) {
            let answer = self.plan_and_run(Statement::Query(Box::new(query))).await?;
            let batches = match answer {
                Some(answer) => datafusion::physical_plan::common::collect(answer.rows).await?,
                None => Vec::new(),
            };
            let first = batches.iter().find(|batch| batch.num_rows() > 0 && batch.num_columns() > 0);
            let value = first.map(|batch| ScalarValue::try_from_array(batch.column(0), 0)).transpose()?;
            let value = value.unwrap_or(ScalarValue::Null);
            table_arguments::replace_first(statement, &value);
        }
        Ok(())
    }

    /// Asks for the types of all arguments, instead of reading all traces here.
    async fn ask_arg_types(&self) -> Result<(), DataFusionError> {
        let sql = "select key, count(int_value) > 0, count(real_value) > 0, count(string_value) > 0
            from args where key is not null group by key";
        let error = |error: SqlError| DataFusionError::Internal(error.to_string());
        let statement = parse(sql, &Parameters::new()).map_err(error)?.remove(0).statement;
        let Some(answer) = self.try_run(&statement).await? else { return Ok(()) };
        let mut all = HashMap::new();
        for batch in datafusion::physical_plan::common::collect(answer.rows).await? {
            let keys = cast(batch.column(0), &DataType::Utf8)?;
            for (row, key) in keys.as_string::<i32>().iter().enumerate() {
                let mut types = ArgTypes::default();
                types.has_int = batch.column(1).as_boolean().value(row);
                types.has_real = batch.column(2).as_boolean().value(row);
                types.has_text = batch.column(3).as_boolean().value(row);
                all.insert(key.unwrap_or_default().to_owned(), types);
            }
        }
        self.traces.set_arg_types(all);
        Ok(())
    }

    /// Runs a statement. If DataFusion refuses it, forms that SQLite accepts are translated.
    async fn plan_and_run(&self, mut statement: Statement) -> Result<Option<Answer>, DataFusionError> {
        let mut replaced = HashSet::new();
        let (mut has_aggregated, mut has_reduced) = (false, false);
        loop {
            let error = match self.try_run(&statement).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let is_mended = match missing_column(&error) {
                Some(name) => {
                    fallback::replace_name(&mut statement, &name)
                        && replaced.insert(name)
                        && replaced.len() < MAX_RETRIES
                }
                None if is_about_groups(&error) && !has_aggregated => {
                    has_aggregated = true;
                    fallback::aggregate_bare_columns(&mut statement, &self.aggregates)
                }
                None if error.to_string().contains("Correlated scalar subquery must be aggregated") && !has_reduced => {
                    has_reduced = true;
                    fallback::aggregate_subqueries(&mut statement, &self.aggregates)
                }
                None => false,
            };
            if !is_mended {
                return Err(error);
            }
        }
    }

    async fn try_run(&self, statement: &Statement) -> Result<Option<Answer>, DataFusionError> {
        let state = self.context.state();
        let plan = state.statement_to_plan(DfStatement::Statement(Box::new(statement.clone()))).await?;
        let plan = single_groups::rewrite(memberships::rewrite(plan)?)?;
        let plan = self.prepare_for_lake(plan).await?;
        let has_rows = !matches!(plan, LogicalPlan::Ddl(_) | LogicalPlan::Statement(_));
        let frame = self.context.execute_logical_plan(plan).await?;
        if !has_rows {
            return Ok(None);
        }
        let plan = frame.create_physical_plan().await?;
        let rows = execute_stream(plan, self.context.task_ctx())?;
        Ok(Some(Answer { schema: rows.schema(), rows }))
    }

    /// Prepares functions that look into traces, if the tables are those of a lake.
    async fn prepare_for_lake(&self, plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
        let Some(lake) = self.traces.lake() else { return Ok(plan) };
        if self.traces.lake_clocks().is_none() && lake_clocks::are_needed(&plan)? {
            self.traces.set_lake_clocks(LakeClocks::read(&self.context, lake).await?);
        }
        lake_arguments::rewrite(plan, lake)
    }

    /// Adds a view, and those that it uses, if there is one with this name.
    async fn add_view(&self, name: &str) -> Result<(), SqlError> {
        let Some(view) = view(name) else { return Ok(()) };
        if !self.views.lock().unwrap_or_else(PoisonError::into_inner).insert(view.name) {
            return Ok(());
        }
        let sql = format!("create view {} as {}", view.name, self.with_trace_columns(view.sql));
        for statement in parse(&sql, &Parameters::new())? {
            for word in statement.words.iter().filter(|word| *word != name) {
                Box::pin(self.add_view(word)).await?;
            }
            self.try_run(&statement.statement).await.map_err(|error| self.sql_error(&error))?;
        }
        Ok(())
    }

    /// Fills in the columns that tell traces apart.
    fn with_trace_columns(&self, sql: &str) -> String {
        let mut out = String::new();
        let mut rest = sql;
        while let Some((before, after)) = rest.split_once('{') {
            let (table, after) = after.split_once('}').expect("a view is well-formed");
            out.push_str(before);
            for column in &self.trace_columns {
                out.push_str(&match table.strip_prefix("min ") {
                    Some(table) => format!(", min({table}.{column}) as {column}"),
                    None => format!(", {table}.{column}"),
                });
            }
            rest = after;
        }
        out + rest
    }
}

/// Consumers of memory that an error names.
const TOP_CONSUMERS: core::num::NonZeroUsize = core::num::NonZeroUsize::new(3).expect("it is not 0");

/// Names that are replaced in a statement before it is an error.
const MAX_RETRIES: usize = 20;

/// Statements that read: no statement writes a file or reads another one than the traces.
fn check_kind(statement: &Statement) -> Result<(), SqlError> {
    let is_allowed = match statement {
        Statement::Query(query) => !query.to_string().is_empty(),
        Statement::CreateView(_)
        | Statement::Explain { .. }
        | Statement::ExplainTable { .. }
        | Statement::ShowTables { .. }
        | Statement::ShowColumns { .. }
        | Statement::ShowFunctions { .. } => true,
        Statement::CreateTable(create) => create.query.is_some() && create.location.is_none(),
        Statement::Drop { object_type, .. } => matches!(object_type, ObjectType::Table | ObjectType::View),
        _ => false,
    };
    if is_allowed {
        return Ok(());
    }
    let text = statement.to_string();
    let kind: Vec<&str> = text.split_whitespace().take(2).collect();
    Err(SqlError::new(format!("a statement '{} …' is not supported", kind.join(" ")))
        .help("there are SELECT, CREATE TABLE … AS, CREATE VIEW, DROP, EXPLAIN, DESCRIBE and SHOW TABLES"))
}

fn missing_column(error: &DataFusionError) -> Option<String> {
    match error.find_root() {
        DataFusionError::SchemaError(schema, _) => match &**schema {
            SchemaError::FieldNotFound { field, .. } if field.relation.is_none() => Some(field.name().to_owned()),
            _ => None,
        },
        _ => None,
    }
}

fn is_about_groups(error: &DataFusionError) -> bool {
    let text = error.to_string();
    text.contains("must appear in the GROUP BY clause") || text.contains("must be in GROUP BY")
}
