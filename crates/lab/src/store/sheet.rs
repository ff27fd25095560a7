//! A table of named columns as a Parquet file.
//!
//! Three column types are all results need, so this speaks to the Parquet library directly: going
//! through Arrow would double the time to build the program.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use tacit_sim::capture::AtomicFile;

use super::{Provenance, guard};
use crate::error::LabError;

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Column {
    Text(Vec<String>),
    Integer(Vec<Option<i64>>),
    Number(Vec<Option<f64>>),
}

impl Column {
    /// Its rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(values) => values.len(),
            Self::Integer(values) => values.len(),
            Self::Number(values) => values.len(),
        }
    }
}

/// Columns of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sheet {
    pub columns: Vec<(String, Column)>,
}

impl Sheet {
    pub fn text<'a>(&mut self, name: &str, values: impl Iterator<Item = &'a str>) {
        self.columns.push((name.to_owned(), Column::Text(values.map(str::to_owned).collect())));
    }

    pub fn integer(&mut self, name: &str, values: impl Iterator<Item = Option<u64>>) {
        // Counters stay far below 2^63; digests, which do not, are text.
        let values = values.map(|value| value.and_then(|value| i64::try_from(value).ok()));
        self.columns.push((name.to_owned(), Column::Integer(values.collect())));
    }

    pub fn number(&mut self, name: &str, values: impl Iterator<Item = Option<f64>>) {
        self.columns.push((name.to_owned(), Column::Number(values.collect())));
    }

    /// Writes the sheet to `path`, whole or not at all.
    pub fn write(&self, path: &Path, provenance: &Provenance) -> Result<(), LabError> {
        let mut file = AtomicFile::create(path).map_err(LabError::io(path))?;
        self.write_to(&mut file, provenance).map_err(LabError::store(path))?;
        file.commit().map_err(LabError::io(path))
    }

    fn write_to(&self, out: &mut AtomicFile, provenance: &Provenance) -> Result<(), ParquetError> {
        let pairs = provenance.fields().map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned()));
        let properties = WriterProperties::builder()
            .set_key_value_metadata(Some(pairs.into()))
            .set_created_by(format!("tacit {}", crate::VERSION))
            .build();
        let fields =
            self.columns.iter().map(|(name, column)| field(name, column)).collect::<Result<_, _>>()?;
        let schema = Type::group_type_builder("row").with_fields(fields).build()?;
        let mut writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
        let mut group = writer.next_row_group()?;
        for (_, column) in &self.columns {
            let mut out = group.next_column()?.ok_or_else(|| ParquetError::EOF("fewer columns".into()))?;
            write_column(column, &mut out)?;
            out.close()?;
        }
        group.close()?;
        writer.close()?;
        Ok(())
    }

    /// Reads a sheet that [`Sheet::write`] wrote.
    ///
    /// # Errors
    /// Where there is no file, or a damaged one.
    pub fn read(path: &Path) -> Result<(Provenance, Self), LabError> {
        let file = File::open(path).map_err(LabError::io(path))?;
        let octets = file.metadata().map_err(LabError::io(path))?.len();
        guard::caught(|| Self::read_from(file, octets)).map_err(LabError::store(path))
    }

    fn read_from(file: File, octets: u64) -> Result<(Provenance, Self), ParquetError> {
        let reader = SerializedFileReader::new(file)?;
        let rows = guard::rows(&reader, octets)?;
        let metadata = reader.metadata().file_metadata();
        let pairs = metadata.key_value_metadata().cloned().unwrap_or_default();
        let provenance = Provenance::from_fields(|key| {
            let pair = pairs.iter().find(|pair| pair.key == key);
            pair.and_then(|pair| pair.value.clone()).unwrap_or_default()
        });
        let names: Vec<String> =
            metadata.schema_descr().columns().iter().map(|column| column.name().to_owned()).collect();
        let group = reader.get_row_group(0)?;
        let mut sheet = Self::default();
        for (index, name) in names.into_iter().enumerate() {
            let column = read_column(group.get_column_reader(index)?, rows)?;
            if column.len() != rows {
                return Err(ParquetError::General(format!(
                    "{} values of {name} in {rows} rows",
                    column.len()
                )));
            }
            sheet.columns.push((name, column));
        }
        Ok((provenance, sheet))
    }
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

/// The values that are there, and for each row whether it has one.
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

fn spread<T>(values: Vec<T>, levels: &[i16]) -> Vec<Option<T>> {
    let mut values = values.into_iter();
    levels.iter().map(|level| if *level > 0 { values.next() } else { None }).collect()
}

fn read_column(reader: ColumnReader, rows: usize) -> Result<Column, ParquetError> {
    let mut levels = Vec::new();
    match reader {
        ColumnReader::ByteArrayColumnReader(mut reader) => {
            let mut values = Vec::new();
            reader.read_records(rows, None, None, &mut values)?;
            let texts = values.iter().map(|value| value.as_utf8().map(str::to_owned));
            texts.collect::<Result<_, _>>().map(Column::Text)
        }
        ColumnReader::Int64ColumnReader(mut reader) => {
            let mut values = Vec::new();
            reader.read_records(rows, Some(&mut levels), None, &mut values)?;
            Ok(Column::Integer(spread(values, &levels)))
        }
        ColumnReader::DoubleColumnReader(mut reader) => {
            let mut values = Vec::new();
            reader.read_records(rows, Some(&mut levels), None, &mut values)?;
            Ok(Column::Number(spread(values, &levels)))
        }
        _ => Err(ParquetError::General("a column of a type that tacit does not write".into())),
    }
}
