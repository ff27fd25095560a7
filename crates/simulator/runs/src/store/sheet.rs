//! A table of named columns as a Parquet file.
//!
//! Results need only three column types, so this module uses the Parquet library directly. Arrow would double the build
//! time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use tacit_sim::capture::AtomicFile;

use super::Provenance;
use crate::error::RunsError;

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Text.
    Text(Vec<String>),
    /// Integers.
    Integer(Vec<Option<i64>>),
    /// Floating-point values.
    Number(Vec<Option<f64>>),
}

/// Columns of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// Name and values of each column.
    pub columns: Vec<(String, Column)>,
}

impl Sheet {
    /// Adds a column of text.
    pub fn text<'a>(&mut self, name: &str, values: impl Iterator<Item = &'a str>) {
        self.columns.push((name.to_owned(), Column::Text(values.map(str::to_owned).collect())));
    }

    /// Adds a column of integers.
    pub fn integer(&mut self, name: &str, values: impl Iterator<Item = Option<u64>>) {
        // Counters are far below 2^63. Digests are not, and are stored as text.
        let values = values.map(|value| value.and_then(|value| i64::try_from(value).ok()));
        self.columns.push((name.to_owned(), Column::Integer(values.collect())));
    }

    /// Adds a column of floating-point values.
    pub fn number(&mut self, name: &str, values: impl Iterator<Item = Option<f64>>) {
        self.columns.push((name.to_owned(), Column::Number(values.collect())));
    }

    /// The sheet without the column `name`.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.columns.retain(|(known, _)| known != name);
        self
    }
}

/// A Parquet file under construction. All sheets must have the same columns; each becomes a row group.
pub(crate) struct SheetWriter {
    path: PathBuf,
    writer: SerializedFileWriter<AtomicFile>,
}

impl SheetWriter {
    /// Creates a file for sheets with the columns of `like`. It appears at `path` once it is complete.
    pub fn create(path: &Path, like: &Sheet, provenance: &Provenance) -> Result<Self, RunsError> {
        let file = AtomicFile::create(path).map_err(RunsError::io(path))?;
        let pairs = provenance.metadata().map(|(key, value)| KeyValue { key, value });
        let properties = WriterProperties::builder()
            .set_key_value_metadata(Some(pairs.collect()))
            .set_created_by(format!("tacit {}", crate::VERSION))
            .build();
        let writer = schema(like)
            .and_then(|schema| SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)));
        Ok(Self { path: path.to_owned(), writer: writer.map_err(RunsError::store(path))? })
    }

    /// Adds the rows of `sheet`.
    pub fn write(&mut self, sheet: &Sheet) -> Result<(), RunsError> {
        self.write_group(sheet).map_err(RunsError::store(&self.path))
    }

    fn write_group(&mut self, sheet: &Sheet) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for (_, column) in &sheet.columns {
            let mut out = group.next_column()?.ok_or_else(|| ParquetError::EOF("fewer columns".into()))?;
            write_column(column, &mut out)?;
            out.close()?;
        }
        group.close().map(drop)
    }

    /// Completes the file and moves it to its path.
    pub fn finish(self) -> Result<(), RunsError> {
        let file = self.writer.into_inner().map_err(RunsError::store(&self.path))?;
        file.commit().map_err(RunsError::io(&self.path))
    }
}

fn schema(sheet: &Sheet) -> Result<Type, ParquetError> {
    let fields = sheet.columns.iter().map(|(name, column)| field(name, column)).collect::<Result<_, _>>()?;
    Type::group_type_builder("row").with_fields(fields).build()
}

fn field(name: &str, column: &Column) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical, repetition) = match column {
        Column::Text(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED),
        Column::Integer(_) => (PhysicalType::INT64, None, Repetition::OPTIONAL),
        Column::Number(_) => (PhysicalType::DOUBLE, None, Repetition::OPTIONAL),
    };
    let builder = Type::primitive_type_builder(name, physical).with_repetition(repetition);
    builder.with_logical_type(logical).build().map(Arc::new)
}

/// The values that are present, and for each row whether it has one.
fn levels<T: Copy>(values: &[Option<T>]) -> (Vec<T>, Vec<i16>) {
    (
        values.iter().flatten().copied().collect(),
        values.iter().map(|value| i16::from(value.is_some())).collect(),
    )
}

fn write_column(column: &Column, out: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
    match column {
        Column::Text(values) => {
            let values: Vec<ByteArray> = values.iter().map(|text| text.as_str().into()).collect();
            out.typed::<ByteArrayType>().write_batch(&values, None, None)?;
        }
        Column::Integer(values) => {
            let (values, levels) = levels(values);
            out.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
        }
        Column::Number(values) => {
            let (values, levels) = levels(values);
            out.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
        }
    }
    Ok(())
}
