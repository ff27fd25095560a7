//! Tables that other libraries can use without conversion.

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, RecordBatchOptions, StringArray,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyCapsule, PyList};
use tacit_runs::store::{Column, Sheet};

/// Name of the capsules of the interface (Arrow PyCapsule interface).
const STREAM: &CStr = c"arrow_array_stream";

/// Columns of equal length with texts, integers and numbers; any may be missing.
#[pyclass(module = "tacit._native", frozen)]
pub struct Table {
    batch: RecordBatch,
}

impl Table {
    /// The table of a sheet, which takes over its columns.
    pub fn new(sheet: Sheet) -> Result<Self, ArrowError> {
        let columns = sheet.columns.into_iter().map(|(name, column)| {
            let (kind, array): (_, ArrayRef) = match column {
                Column::Text(texts) => (DataType::Utf8, Arc::new(StringArray::from(texts))),
                Column::Integer(counts) => (DataType::Int64, Arc::new(Int64Array::from(counts))),
                Column::Number(numbers) => (DataType::Float64, Arc::new(Float64Array::from(numbers))),
            };
            (Field::new(name, kind, true), array)
        });
        let (fields, arrays): (Vec<_>, Vec<_>) = columns.unzip();
        // A table without columns has no rows.
        let rows = arrays.first().map_or(0, |array: &ArrayRef| array.len());
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)?;
        Ok(Self { batch })
    }
}

#[pymethods]
impl Table {
    /// The Arrow PyCapsule interface. Values are not copied.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer may request other types but must accept these ("best effort").
        let _ = requested_schema;
        let reader = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The values of a column; KeyError if there is no column of this name.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let unknown = || PyKeyError::new_err(name.to_owned());
        let array = self.batch.column_by_name(name).ok_or_else(unknown)?.as_any();
        if let Some(texts) = array.downcast_ref::<StringArray>() {
            PyList::new(py, texts.iter().collect::<Vec<_>>())
        } else if let Some(counts) = array.downcast_ref::<Int64Array>() {
            PyList::new(py, counts.iter().collect::<Vec<_>>())
        } else if let Some(numbers) = array.downcast_ref::<Float64Array>() {
            PyList::new(py, numbers.iter().collect::<Vec<_>>())
        } else {
            Err(PyRuntimeError::new_err(format!("{name} has a type that no table has")))
        }
    }
}
