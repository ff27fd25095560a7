//! A checksum that a result carries in itself.

use serde::Serialize;
use serde_json::Value;

/// Where it stands; the checksum is of the result with nothing there.
const PLACE: &str = "/provenance/checksum";

/// BLAKE3 of `result` as JSON, whose checksum is empty yet.
pub(crate) fn of(result: &impl Serialize) -> String {
    // A result that cannot be JSON is not printed either.
    serde_json::to_value(result).map(|value| of_json(&value)).unwrap_or_default()
}

fn of_json(value: &Value) -> String {
    blake3::hash(value.to_string().as_bytes()).to_hex().to_string()
}

/// Whether a stored result fits its checksum; `None` where it has none.
pub(crate) fn of_stored(value: &Value) -> Option<bool> {
    let mut bare = value.clone();
    let checksum = std::mem::replace(bare.pointer_mut(PLACE)?, Value::String(String::new()));
    Some(checksum.as_str()? == of_json(&bare))
}
