//! Forwards headers from one connection to the next (RFC 9110 section 7.6).

use hyper::Version;
use hyper::header::{
    CONNECTION, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION,
    TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VIA,
};

/// This proxy's pseudonym in `Via`.
const PSEUDONYM: &str = "tacit";

/// Headers that apply to one connection, whether or not `Connection` lists them (RFC 9110 section 7.6.1).
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Removes all but the end-to-end headers, and adds `Via`.
pub fn pass_on(headers: &mut HeaderMap, version: Version) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP_BY_HOP.iter().chain(&named) {
        headers.remove(name);
    }
    // The proxy itself answers it, by reading the body.
    headers.remove(EXPECT);
    // Generated from the URL (RFC 9112 section 3.2.2).
    headers.remove(HOST);
    let number = if version == Version::HTTP_10 { "1.0" } else { "1.1" };
    let via = HeaderValue::try_from(format!("{number} {PSEUDONYM}"));
    headers.extend(via.map(|via| (VIA, via)).ok());
}

/// True for a message in a forwarding loop: it passed more tacit proxies than any real chain has.
pub fn is_loop(headers: &HeaderMap) -> bool {
    let values = headers.get_all(VIA).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).filter(|hop| hop.trim().ends_with(PSEUDONYM)).count() > 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hop_by_hop_headers_are_not_forwarded() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Secret"),
            ("x-secret", "1"),
            ("proxy-connection", "keep-alive"),
            ("proxy-authorization", "Basic abc"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("upgrade", "websocket"),
            ("host", "elsewhere"),
            ("accept", "*/*"),
            ("via", "1.0 other"),
        ] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        pass_on(&mut headers, Version::HTTP_11);
        let mut left: Vec<_> =
            headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        // The order of header names is not specified.
        left.sort_unstable();
        assert_eq!(left, [("accept", "*/*"), ("via", "1.0 other"), ("via", "1.1 tacit")]);
        assert!(!is_loop(&headers));
        (0..5).for_each(|_| pass_on(&mut headers, Version::HTTP_11));
        assert!(is_loop(&headers));
    }
}
