//! `truth(x)`: the truth value of any value, as SQLite sees it. The rewriting of statements adds
//! it.

use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _, BooleanArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility, lit,
};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Truth(Signature);

impl Truth {
    pub(super) fn new() -> Self {
        Self(Signature::new(TypeSignature::Any(1), Volatility::Immutable))
    }
}

impl ScalarUDFImpl for Truth {
    fn name(&self) -> &str {
        "truth"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn simplify(&self, mut args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(match info.get_data_type(&args[0])? {
            DataType::Boolean => ExprSimplifyResult::Simplified(args.remove(0)),
            // Files have statistics for a comparison, and engines elsewhere know it.
            DataType::Int64 => ExprSimplifyResult::Simplified(args.remove(0).not_eq(lit(0_i64))),
            _ => ExprSimplifyResult::Original(args),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let array = args.args[0].to_array(args.number_rows)?;
        let truth: BooleanArray = match array.data_type() {
            DataType::Boolean => array.as_boolean().clone(),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                let texts = cast(&array, &DataType::Utf8View)?;
                texts.as_string_view().iter().map(|text| text.map(|text| number(text) != 0.0)).collect()
            }
            _ => {
                let numbers = cast(&array, &DataType::Float64)?;
                numbers.as_primitive::<Float64Type>().iter().map(|number| number.map(|number| number != 0.0)).collect()
            }
        };
        debug_assert_eq!(truth.len(), array.len());
        Ok(ColumnarValue::Array(Arc::new(truth)))
    }
}

/// Returns the number at the begin of a text; 0 if there is none.
fn number(text: &str) -> f64 {
    let text = text.trim_start();
    let digits = text.find(|ch: char| !ch.is_ascii_digit() && !matches!(ch, '.' | '-' | '+')).unwrap_or(text.len());
    (0..=digits).rev().find_map(|end| text[..end].parse().ok()).unwrap_or(0.0)
}
