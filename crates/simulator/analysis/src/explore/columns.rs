//! Encodes columns of integers as bytes that compress well: differences between rows, then all lowest bytes, all second
//! bytes and so on (little-endian, plane by plane). `data.js` decodes them.

use std::collections::BTreeMap;

use serde::Serialize;

/// Coding of the values in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// The value itself.
    Plain,
    /// The difference from the previous value in zigzag coding: 0, -1, 1, -2, … become 0, 1, 2, 3, …
    Step,
    /// The difference from the last row with the same value in the named column, which must precede this one.
    StepBy(&'static str),
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub name: &'static str,
    pub coding: Coding,
    pub values: Vec<u64>,
}

/// Layout of a column, for decoding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Layout {
    pub name: &'static str,
    pub rows: usize,
    /// Bytes per value.
    pub width: usize,
    /// Whether values are differences.
    pub steps: bool,
    /// The column by which rows are grouped for differences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<&'static str>,
}

/// Encodes the columns. Returns their layout and the bytes.
pub(super) fn encode(columns: &[Column]) -> (Vec<Layout>, Vec<u8>) {
    let mut bytes = Vec::new();
    let mut layouts = Vec::new();
    for column in columns {
        let coded = match column.coding {
            Coding::Plain => column.values.clone(),
            Coding::Step => steps(&column.values, &[]),
            Coding::StepBy(name) => {
                let key = columns.iter().find(|other| other.name == name).expect("the key is a column");
                steps(&column.values, &key.values)
            }
        };
        let most = coded.iter().copied().max().unwrap_or(0);
        let width = (u64::BITS - most.leading_zeros()).div_ceil(8).max(1) as usize;
        for plane in 0..width {
            bytes.extend(coded.iter().map(|value| value.to_le_bytes()[plane]));
        }
        layouts.push(Layout {
            name: column.name,
            rows: coded.len(),
            width,
            steps: column.coding != Coding::Plain,
            by: match column.coding {
                Coding::StepBy(name) => Some(name),
                Coding::Plain | Coding::Step => None,
            },
        });
    }
    (layouts, bytes)
}

/// Differences from the last value with the same key; without keys, from the previous value.
fn steps(values: &[u64], keys: &[u64]) -> Vec<u64> {
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    let step = |(index, value): (usize, &u64)| {
        let before = last.insert(keys.get(index).copied().unwrap_or(0), *value).unwrap_or(0);
        let step = value.wrapping_sub(before).cast_signed();
        ((step << 1) ^ (step >> 63)).cast_unsigned()
    };
    values.iter().enumerate().map(step).collect()
}

/// Decodes the columns, as the page does.
#[cfg(test)]
pub(super) fn decode(layouts: &[Layout], bytes: &[u8]) -> BTreeMap<&'static str, Vec<u64>> {
    let mut columns: BTreeMap<&'static str, Vec<u64>> = BTreeMap::new();
    let mut from = 0;
    for layout in layouts {
        let planes = &bytes[from..from + layout.rows * layout.width];
        from += planes.len();
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        let mut values = Vec::new();
        for row in 0..layout.rows {
            let plane = |plane: usize| u64::from(planes[plane * layout.rows + row]) << (8 * plane);
            let coded: u64 = (0..layout.width).map(plane).sum();
            if !layout.steps {
                values.push(coded);
                continue;
            }
            let key = layout.by.map_or(0, |by| columns[by][row]);
            let step = (coded >> 1) ^ (coded & 1).wrapping_neg();
            let value = last.get(&key).copied().unwrap_or(0).wrapping_add(step);
            last.insert(key, value);
            values.push(value);
        }
        columns.insert(layout.name, values);
    }
    assert_eq!(from, bytes.len(), "nothing is left");
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_back_as_they_were() {
        let column = |name, coding, values: &[u64]| Column { name, coding, values: values.to_vec() };
        let columns = [
            column("key", Coding::Plain, &[0, 1, 0, 300]),
            column("time", Coding::Step, &[5, 5, 1 << 40, 7]),
            column("count", Coding::StepBy("key"), &[u64::MAX, 10, 0, 1]),
            column("none", Coding::Plain, &[]),
        ];
        let (layouts, bytes) = encode(&columns);
        let widths: Vec<usize> = layouts.iter().map(|layout| layout.width).collect();
        assert_eq!(widths, [2, 6, 1, 1], "no wider than needed; from 2^64 - 1 to 0 is one step");
        let decoded = decode(&layouts, &bytes);
        for column in columns {
            assert_eq!(decoded[column.name], column.values, "{}", column.name);
        }
    }

    #[test]
    fn low_bytes_stand_together_before_high_ones() {
        let (_, bytes) = encode(&[Column { name: "a", coding: Coding::Plain, values: vec![0x0102, 0x0304] }]);
        assert_eq!(bytes, [2, 4, 1, 3]);
    }
}
