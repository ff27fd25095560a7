//! A checksum that is part of the result it covers.

use serde::Serialize;
use serde_json::Value;

/// Location of the checksum. It is computed with an empty string there.
const PLACE: &str = "/provenance/checksum";

/// BLAKE3 of `result` as JSON. Its checksum field must be empty.
pub(crate) fn compute(result: &impl Serialize) -> String {
    // A result that cannot be serialised as JSON is not printed either.
    serde_json::to_value(result).map(|value| hash_json(&value)).unwrap_or_default()
}

fn hash_json(value: &Value) -> String {
    blake3::hash(value.to_string().as_bytes()).to_hex().to_string()
}

/// Whether a stored result matches its checksum; `None` if it has none.
pub(crate) fn is_intact(value: &Value) -> Option<bool> {
    let mut bare = value.clone();
    let checksum = std::mem::replace(bare.pointer_mut(PLACE)?, Value::String(String::new()));
    Some(checksum.as_str()? == hash_json(&bare))
}
