//! Parquet files that are damaged: what the Parquet library takes on trust is checked first, and a panic of it
//! becomes an error.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::column::page::Page;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{FileReader, RowGroupReader};

/// Most rows of a page: the library ends one with the batch that makes it 20,000, and no batch has more.
const MAX_PAGE_ROWS: u64 = 2 * 20_000;

/// Checks a file of `octets` that one row group fills, and gives its rows: each column lies within the file, and has
/// pages of encodings that this program writes, with as many values as there are rows.
///
/// # Errors
/// Where that is not so, or a page cannot be read.
pub(super) fn rows(reader: &dyn FileReader, octets: u64) -> Result<usize, ParquetError> {
    let metadata = reader.metadata();
    if metadata.num_row_groups() != 1 {
        return damaged(format!("{} row groups", metadata.num_row_groups()));
    }
    let (group, columns) = (metadata.row_group(0), metadata.file_metadata().schema_descr().num_columns());
    if group.num_columns() != columns {
        return damaged(format!("{} columns instead of {columns}", group.num_columns()));
    }
    let rows = group.num_rows();
    if rows < 0 || metadata.file_metadata().num_rows() != rows {
        return damaged(format!("{rows} rows of {}", metadata.file_metadata().num_rows()));
    }
    group.columns().iter().try_for_each(|chunk| lies_within(chunk, octets))?;
    let group = reader.get_row_group(0)?;
    for column in 0..columns {
        let values = values(&*group, column)?;
        if i64::try_from(values) != Ok(rows) {
            return damaged(format!("column {column} has {values} values in {rows} rows"));
        }
    }
    usize::try_from(rows).or_else(|_| damaged(format!("{rows} rows")))
}

fn damaged<T>(what: String) -> Result<T, ParquetError> {
    Err(ParquetError::General(what))
}

fn lies_within(chunk: &ColumnChunkMetaData, octets: u64) -> Result<(), ParquetError> {
    let (start, length) =
        (chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset()), chunk.compressed_size());
    let end = u64::try_from(start).ok().zip(u64::try_from(length).ok());
    match end.and_then(|(start, length)| start.checked_add(length)) {
        Some(end) if end <= octets => Ok(()),
        _ => damaged(format!("a column of {length} octets from {start} on in a file of {octets}")),
    }
}

/// The values in the pages of a column, absent ones included.
fn values(group: &dyn RowGroupReader, column: usize) -> Result<u64, ParquetError> {
    // A value takes at least as much in a dictionary, text its length.
    let least = match group.metadata().column(column).column_type() {
        PhysicalType::BYTE_ARRAY => 4,
        PhysicalType::INT64 | PhysicalType::DOUBLE => 8,
        other => return damaged(format!("column {column} has the type {other}")),
    };
    let mut total = 0;
    for page in group.get_column_page_reader(column)? {
        let page = page?;
        let (count, encoding) = (u64::from(page.num_values()), page.encoding());
        let fits = match page {
            Page::DictionaryPage { buf, .. } => {
                encoding == Encoding::PLAIN && count <= buf.len() as u64 / least
            }
            Page::DataPage { .. } => {
                total += count;
                matches!(encoding, Encoding::PLAIN | Encoding::RLE_DICTIONARY) && count <= MAX_PAGE_ROWS
            }
            Page::DataPageV2 { .. } => false,
        };
        if !fits {
            return damaged(format!("column {column} has a page of {count} values as {encoding}"));
        }
    }
    Ok(total)
}

thread_local! {
    /// Whether panics of this thread are to be errors, without a message of their own.
    static CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// What `call` gives; an error that quotes the panic where it panics. Nothing is printed.
///
/// # Errors
/// Those of `call`, and its panics.
pub(super) fn caught<T>(call: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !CATCHING.get() {
                usual(panic);
            }
        }));
    });
    CATCHING.set(true);
    // Nothing that `call` may leave half done outlives it: it gives a sheet, or it is forgotten.
    let outcome = panic::catch_unwind(AssertUnwindSafe(call));
    CATCHING.set(false);
    outcome.unwrap_or_else(|panic| damaged(format!("it is damaged ({})", said(&*panic))))
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;

    use parquet::schema::types::{ColumnDescriptor, ColumnPath, Type};
    use tacit_link::random::Stream;

    use super::*;
    use crate::error::LabError;
    use crate::store::Provenance;
    use crate::store::sheet::Sheet;

    /// Columns of each kind, with and without dictionary and gaps.
    fn write(path: &Path, rows: u64) {
        let mut sheet = Sheet::default();
        let names: Vec<String> = (0..rows).map(|row| format!("run {}", row % 7)).collect();
        sheet.text("run", names.iter().map(String::as_str));
        sheet.integer("seed", (0..rows).map(Some));
        sheet.integer("rtos", (0..rows).map(|row| (row % 3 > 0).then_some(row)));
        sheet.number("x", (0..rows).map(|_| None));
        sheet.number("goodput_bps", (0..rows).map(|row| Some(row as f64 / 7.0)));
        sheet.write(path, &Provenance::default()).unwrap();
    }

    /// Flips, overwrites, drops or doubles up to four octets; the length stays.
    fn damage(octets: &mut [u8], draws: &mut Stream) {
        let last = octets.len() - 1;
        for _ in 0..=draws.up_to(3) {
            let place = draws.up_to(last as u32) as usize;
            match draws.up_to(7) {
                0..=3 => octets[place] ^= 1 << draws.up_to(7),
                4..=5 => octets[place] = draws.up_to(255) as u8,
                6 => octets.copy_within(place + 1.., place),
                _ => octets.copy_within(place..last, place + 1),
            }
        }
    }

    #[test]
    fn pages_of_any_number_are_read_back() {
        let directory = tempfile::tempdir().unwrap();
        for rows in [0, 1, 20_000, 70_001] {
            let path = directory.path().join("series.parquet");
            write(&path, rows);
            let (_, sheet) = Sheet::read(&path).unwrap();
            assert!(sheet.columns.iter().all(|(_, column)| column.len() as u64 == rows), "{rows}");
        }
    }

    #[test]
    fn a_panic_is_an_error_that_quotes_it() {
        let error = caught::<()>(|| panic!("column {} is odd", 3)).unwrap_err();
        assert!(error.to_string().contains("it is damaged (column 3 is odd)"), "{error}");
        assert!(!CATCHING.get());
    }

    #[test]
    fn a_column_lies_within_its_file() {
        let kind = Arc::new(Type::primitive_type_builder("x", PhysicalType::INT64).build().unwrap());
        let column = Arc::new(ColumnDescriptor::new(kind, 0, 0, ColumnPath::from("x")));
        let checked = |start, length| {
            let chunk = ColumnChunkMetaData::builder(Arc::clone(&column));
            let chunk = chunk.set_data_page_offset(start).set_total_compressed_size(length).build().unwrap();
            lies_within(&chunk, 1_000).is_ok()
        };
        assert!(checked(4, 996) && checked(1_000, 0));
        assert!(!checked(5, 996) && !checked(-1, 10) && !checked(4, -8));
        assert!(!checked(i64::MAX, i64::MAX));
    }

    #[test]
    fn a_dictionary_has_no_more_values_than_fit_in_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.parquet");
        write(&path, 40);
        let mut octets = fs::read(&path).unwrap();
        // The header of the dictionary of the first column: 7 values (field 1, zigzag), PLAIN (field 2).
        let place = octets.windows(4).position(|field| field == [0x15, 14, 0x15, 0]).unwrap();
        octets[place + 1] = 2 * 63;
        fs::write(&path, octets).unwrap();
        let error = Sheet::read(&path).unwrap_err().to_string();
        assert!(error.contains("column 0 has a page of 63 values as PLAIN"), "{error}");
    }

    #[test]
    fn what_the_library_panics_at_is_refused_too() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.parquet");
        write(&path, 40);
        let mut octets = fs::read(&path).unwrap();
        // The first page, after "PAR1": its type (field 1, zigzag) from dictionary to index, which readers skip. The
        // library takes for certain that a dictionary stood before values that are numbers of its entries.
        assert_eq!(octets[4..6], [0x15, 2 * 2]);
        octets[5] = 2;
        fs::write(&path, octets).unwrap();
        let error = Sheet::read(&path).unwrap_err().to_string();
        assert!(error.contains("runs.parquet: ") && error.contains("it is damaged"), "{error}");
    }

    #[test]
    fn a_damaged_sheet_is_read_or_refused_with_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("flows.parquet");
        write(&path, 40);
        let sound = fs::read(&path).unwrap();
        // Eight octets after the footer: its length, and "PAR1".
        let tail = sound.len() - 8;
        let length: [u8; 4] = sound[tail..tail + 4].try_into().unwrap();
        let footer = tail - u32::from_le_bytes(length) as usize;
        let mut draws = Stream::new(1, "damage");
        let mut refused = 0;
        for round in 0..4_000 {
            let mut octets = sound.clone();
            // Most of what is taken on trust stands in the footer.
            let part = if round % 2 == 0 { footer..tail } else { 0..footer };
            damage(&mut octets[part], &mut draws);
            if round % 10 == 0 {
                octets.truncate(draws.up_to(tail as u32) as usize);
            }
            // A new file each time: some file systems write one that is overwritten to the disk at once.
            fs::remove_file(&path).unwrap();
            fs::write(&path, octets).unwrap();
            let Err(error) = Sheet::read(&path) else { continue };
            refused += 1;
            assert!(matches!(error, LabError::Store { .. }), "{error}");
            let message = error.to_string();
            assert!(message.contains("flows.parquet: ") && message.lines().count() == 1, "{message}");
        }
        assert!((1_000..4_000).contains(&refused), "{refused}");
    }
}
