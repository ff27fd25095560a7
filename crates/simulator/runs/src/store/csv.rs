//! Writes a table of named columns as CSV (RFC 4180, with Unix line ends), for spreadsheets and other programs without
//! support for Parquet.

use std::borrow::Cow;

use super::sheet::{Column, Sheet};

impl Sheet {
    /// The table as CSV: a header line, then the rows. A missing value is an empty field. Numbers round-trip exactly.
    pub fn to_csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let rows = self.columns.first().map_or(0, |(_, column)| column.len());
        let names = self.columns.iter().map(|(name, _)| Cow::Borrowed(name.as_str()));
        let mut write = |record: Vec<Cow<'_, str>>| {
            let record = record.iter().map(|field| field.as_bytes());
            writer.write_record(record).expect("columns are of equal length, and memory takes them");
        };
        write(names.collect());
        for row in 0..rows {
            write(self.columns.iter().map(|(_, column)| column.field(row)).collect());
        }
        let bytes = writer.into_inner().expect("memory takes the rest");
        String::from_utf8(bytes).expect("fields are text")
    }
}

impl Column {
    fn len(&self) -> usize {
        match self {
            Self::Text(values) => values.len(),
            Self::Integer(values) => values.len(),
            Self::Number(values) => values.len(),
        }
    }

    fn field(&self, row: usize) -> Cow<'_, str> {
        let text = match self {
            Self::Text(values) => return values.get(row).map_or("", String::as_str).into(),
            Self::Integer(values) => values.get(row).copied().flatten().map(|value| value.to_string()),
            // The fewest digits that identify the number.
            Self::Number(values) => values.get(row).copied().flatten().map(|value| format!("{value:?}")),
        };
        text.unwrap_or_default().into()
    }
}
