//! SHA-256 of a whole file as servers send it: `Repr-Digest` (RFC 9530 section 3) or `Digest` (RFC 3230).

use data_encoding::{BASE64, HEXLOWER};
use hyper::header::{HeaderMap, HeaderName};

/// Request header that asks for the digest (RFC 9530 section 4).
pub const WANT: HeaderName = HeaderName::from_static("want-repr-digest");
const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");
const DIGEST: HeaderName = HeaderName::from_static("digest");

/// The SHA-256 of the whole file that `headers` contain, in hexadecimal digits; the answer itself may be partial.
/// `None` if they contain several different digests.
pub fn offered(headers: &HeaderMap) -> Option<String> {
    let values = |name| headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    // In a structured field, byte sequences are enclosed in colons (RFC 8941 section 3.3.5).
    let new = values(REPR_DIGEST).flat_map(|text| text.split(',')).filter_map(|member| {
        let (key, value) = member.trim().split_once('=')?;
        let value = value.split(';').next()?.trim();
        let bytes = value.strip_prefix(':')?.strip_suffix(':')?;
        key.eq_ignore_ascii_case("sha-256").then_some(bytes)
    });
    let old = values(DIGEST).flat_map(|text| text.split(',')).filter_map(|member| {
        let (key, bytes) = member.trim().split_once('=')?;
        key.eq_ignore_ascii_case("sha-256").then_some(bytes)
    });
    let mut found = new.chain(old).filter_map(|text| {
        let bytes = BASE64.decode(text.as_bytes()).ok()?;
        (bytes.len() == 32).then(|| HEXLOWER.encode(&bytes))
    });
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From RFC 9530 appendix B.1: the digest of `{"hello": "world"}` and a line feed.
    const HELLO: &str = "RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=";
    const HELLO_HEX: &str = "44aff4ab2d7c3250525675a08f0cfa9591168cffe51791c5f5bbc417c15a6c38";

    #[test]
    fn a_digest_is_read_in_either_form() {
        let digest_of = |lines: &[(&'static str, String)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(HeaderName::from_static(name), value.parse().unwrap());
            }
            offered(&headers)
        };
        let hello = Some(HELLO_HEX.to_owned());
        assert_eq!(digest_of(&[("repr-digest", format!("sha-256=:{HELLO}:"))]), hello);
        assert_eq!(digest_of(&[("repr-digest", format!("md5=:AAAA:, sha-256=:{HELLO}:;x=1"))]), hello);
        assert_eq!(digest_of(&[("digest", format!("SHA-256={HELLO}"))]), hello);
        assert_eq!(digest_of(&[("digest", format!("SHA-256={HELLO},unixsum=3"))]), hello);
        let other = HELLO.replace("RK", "RL");
        for none in [
            &[][..],
            // `Content-Digest` of a partial answer does not cover the whole file.
            &[("content-digest", format!("sha-256=:{HELLO}:"))],
            &[("repr-digest", format!("sha-256={HELLO}"))],
            &[("repr-digest", "sha-256=:AAAA:".to_owned())],
            &[("repr-digest", "sha-256=::".to_owned())],
            &[("repr-digest", format!("sha-512=:{HELLO}:"))],
            &[("repr-digest", format!("sha-256=:{HELLO}:")), ("digest", format!("sha-256={other}"))],
        ] {
            assert_eq!(digest_of(none), None, "{none:?}");
        }
    }
}
