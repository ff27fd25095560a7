//! The places of a sweep, generated from lists of values.

use tacit_scenario::InputError;

/// The places of a grid as assignments, generated from lists of values such as `wifi.distance=5 m,17 m`. The last list
/// changes fastest. Without lists there is one place.
///
/// # Errors
/// If a list has no value, two lists have the same key, or there are too many places.
pub fn grid(sweeps: &[String]) -> Result<Vec<Vec<String>>, InputError> {
    /// Maximum number of places.
    const MAX_PLACES: usize = 10_000;
    let usage = "KEY=VALUE,…, such as --sweep 'wifi.distance=5 m,17 m'";
    let mut places = vec![Vec::new()];
    let mut keys = Vec::new();
    for sweep in sweeps {
        let wrong = |what: &str| InputError::new(format!("--sweep {sweep}"), what).allowed(usage);
        let (key, values) = sweep.split_once('=').ok_or_else(|| wrong("there is no = in it"))?;
        let (key, values): (_, Vec<_>) = (key.trim(), listed(values).into_iter().map(str::trim).collect());
        if key.is_empty() || values.iter().any(|value| value.is_empty()) {
            return Err(wrong("a key or a value is empty"));
        }
        if keys.contains(&key) {
            return Err(wrong("its key is swept already"));
        }
        keys.push(key);
        if places.len() * values.len() > MAX_PLACES {
            return Err(
                InputError::new("--sweep", "too many places").allowed(format!("at most {MAX_PLACES}"))
            );
        }
        let below = |place: &Vec<String>| -> Vec<Vec<String>> {
            let with = |value: &&str| place.iter().cloned().chain([format!("{key}={value}")]).collect();
            values.iter().map(with).collect()
        };
        places = places.iter().flat_map(below).collect();
    }
    Ok(places)
}

/// Splits a list of values. Commas within a table, an array or a string do not separate values.
fn listed(values: &str) -> Vec<&str> {
    let (mut depth, mut quote) = (0_u32, None);
    let is_end = |letter: char| {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '{' | '[') => depth += 1,
            (None, '}' | ']') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
        letter == ',' && depth == 0 && quote.is_none()
    };
    values.split(is_end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_values_make_a_grid() {
        let places = |sweeps: &[&str]| grid(&sweeps.iter().map(|&text| text.to_owned()).collect::<Vec<_>>());
        assert_eq!(places(&[]).unwrap(), [Vec::<String>::new()]);
        assert_eq!(
            places(&["a=1,2", "b.c=x y"]).unwrap(),
            [["a=1", "b.c=x y"], ["a=2", "b.c=x y"]].map(|place| place.map(String::from).to_vec())
        );
        assert_eq!(
            places(&["w={ ap = 7, clients = [1, 3] },15,\"x, y\",ideal"]).unwrap().concat(),
            ["w={ ap = 7, clients = [1, 3] }", "w=15", "w=\"x, y\"", "w=ideal"]
        );
        for wrong in ["a", "a=", "=1", "a=1,,2"] {
            assert!(places(&[wrong]).is_err(), "{wrong}");
        }
        assert!(places(&["a=1", "a=2"]).unwrap_err().to_string().contains("swept already"));
    }
}
