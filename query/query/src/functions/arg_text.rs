//! `arg_text(number)`: a floating point number of an argument as text, as `extract_arg` has it.
//! Statements over a lake use it.

use std::sync::Arc;

use arrow::array::{AsArray as _, StringViewArray};
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use super::extract_arg::text_of_real;

/// Returns the function.
pub(crate) fn arg_text() -> ScalarUDF {
    ScalarUDF::from(ArgText(Signature::exact(vec![DataType::Float64], Volatility::Immutable)))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ArgText(Signature);

impl ScalarUDFImpl for ArgText {
    fn name(&self) -> &str {
        "arg_text"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let numbers = args.args[0].to_array(args.number_rows)?;
        let texts = numbers.as_primitive::<Float64Type>().iter().map(|number| number.map(text_of_real));
        Ok(ColumnarValue::Array(Arc::new(texts.collect::<StringViewArray>())))
    }
}
