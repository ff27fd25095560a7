//! Arbitrary bytes as the head of a message: the result is the same in one piece and byte by byte, and there is no
//! ambiguity.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tacit_net::content_range::content_range;
use tacit_net::head::HeadReader;
use tacit_net::target::Target;

fuzz_target!(|bytes: &[u8]| {
    let (mut whole, mut pieces) = (HeadReader::default(), HeadReader::default());
    let at_once = whole.push(bytes);
    let mut apart = Ok((0, false));
    for byte in bytes {
        match (pieces.push(std::slice::from_ref(byte)), &mut apart) {
            (Ok((taken, done)), Ok((all, whole))) => {
                *all += taken;
                *whole = done;
                if done {
                    break;
                }
            }
            (Err(error), _) => {
                apart = Err(error);
                break;
            }
            (Ok(_), Err(_)) => unreachable!("it ends with the first error"),
        }
    }
    assert_eq!(at_once, apart);
    if matches!(at_once, Ok((_, true))) {
        let heads = (whole.response(false), whole.request());
        assert_eq!(heads, (pieces.response(false), pieces.request()));
        assert!(heads.0.is_err() || heads.1.is_err(), "a request is no response");
    }
    if let Some((range, complete)) = content_range(bytes) {
        assert!(range.start < range.end && range.end <= complete);
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(target) = Target::parse(text)
    {
        assert_eq!(Target::parse(&target.to_string()).ok().as_ref(), Some(&target), "{text:?}");
    }
});
