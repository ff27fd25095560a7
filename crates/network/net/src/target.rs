//! URLs of files.

use std::fmt;
use std::net::Ipv6Addr;

use hyper::Uri;

use crate::error::NetError;

/// Location of a file: `http://host:port/path?query`, or the same with `https`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// True for `https`.
    pub is_tls: bool,
    /// The server's name or address; an IPv6 address is without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Path and query, as sent to the server.
    pub path: String,
}

impl Target {
    /// Parses a URL.
    ///
    /// # Errors
    /// If the URL is invalid, or has no server.
    pub fn parse(text: &str) -> Result<Self, NetError> {
        let bad = |why| NetError::Url { url: text.to_owned(), why };
        let uri: Uri =
            text.parse().map_err(|_| bad("it does not look like http://HOST/PATH (spaces as %20)"))?;
        Self::from_uri(&uri)
    }

    /// Converts a parsed URI.
    ///
    /// # Errors
    /// If it has no server.
    pub fn from_uri(uri: &Uri) -> Result<Self, NetError> {
        let bad = |why| NetError::Url { url: uri.to_string(), why };
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(_) => return Err(bad("only http:// and https:// can be fetched")),
            None => return Err(bad("it begins with http:// or https://")),
        };
        let authority = uri.authority().ok_or_else(|| bad("it has no server"))?;
        if authority.as_str().contains('@') {
            return Err(bad("names and passwords would go over the air in the clear"));
        }
        let host = authority.host();
        let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let is_host = match bracketed {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => {
                !host.is_empty()
                    && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
            }
        };
        if !is_host {
            return Err(bad("it has no server"));
        }
        let host = bracketed.unwrap_or(host);
        let port = match authority.as_str().rsplit_once(':').filter(|(_, port)| !port.contains(']')) {
            None | Some((_, "")) => default_port(is_tls),
            Some((_, port)) => {
                port.parse().ok().filter(|port| *port != 0).ok_or_else(|| bad("it has no such port"))?
            }
        };
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        // A query may follow the server's name directly, without a path.
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { is_tls, host: host.to_ascii_lowercase(), port, path: in_ascii(&path) })
    }

    /// Host and port, as in the `Host` header.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == default_port(self.is_tls) { host } else { format!("{host}:{}", self.port) }
    }

    /// Resolves `location` relative to this URL (RFC 3986 section 5.2).
    ///
    /// # Errors
    /// As for [`Target::parse`].
    pub fn join(&self, location: &str) -> Result<Self, NetError> {
        let scheme = location.split_once(':').map(|(scheme, _)| scheme);
        if scheme.is_some_and(|scheme| {
            !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
        }) {
            return Self::parse(location);
        }
        if let Some(rest) = location.strip_prefix("//") {
            return Self::parse(&format!("{}://{rest}", self.scheme()));
        }
        let location = location.split('#').next().unwrap_or_default();
        let base = self.path.split('?').next().unwrap_or_default();
        let (path, query) = match location.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (location, None),
        };
        let path = match path {
            "" => base.to_owned(),
            _ if path.starts_with('/') => without_dots(path),
            _ => without_dots(&format!("{}/{path}", base.rsplit_once('/').map_or("", |(folder, _)| folder))),
        };
        let query = query.map_or(String::new(), |query| format!("?{query}"));
        Self::parse(&format!("{}://{}{path}{query}", self.scheme(), self.authority()))
    }

    fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }

    /// A name for the downloaded file: the last segment of the path.
    pub fn file_name(&self) -> Option<&str> {
        let path = self.path.split('?').next()?;
        path.rsplit('/').next().filter(|name| !matches!(*name, "" | "." | "..") && !name.contains('\0'))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme(), self.authority(), self.path)
    }
}

/// Default ports (RFC 9110 sections 4.2.1 and 4.2.2).
fn default_port(is_tls: bool) -> u16 {
    if is_tls { 443 } else { 80 }
}

/// Percent-encodes bytes that are not ASCII.
fn in_ascii(path: &str) -> String {
    let byte = |byte: u8| if byte.is_ascii() { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    path.bytes().map(byte).collect()
}

/// Removes dot segments (RFC 3986 section 5.2.4) from a path that begins with `/`.
fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        match segment {
            "." | ".." => {
                if segment == ".." {
                    parts.pop();
                }
                if segments.peek().is_none() {
                    parts.push("");
                }
            }
            _ => parts.push(segment),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        Target::parse(text).unwrap()
    }

    #[test]
    fn addresses_are_read() {
        assert_eq!(target("http://Example.org").to_string(), "http://example.org/");
        assert_eq!(target("http://a:8080/b?c#d").to_string(), "http://a:8080/b?c");
        assert_eq!(target("http://a?c").to_string(), "http://a/?c");
        assert_eq!(target("http://a/\u{fc}").path, "/%C3%BC");
        let six = target("http://[::1]:81/x/y.iso");
        assert_eq!((six.host.as_str(), six.port, six.file_name()), ("::1", 81, Some("y.iso")));
        assert_eq!(six.authority(), "[::1]:81");
        assert_eq!(target("http://[::1]/").authority(), "[::1]");
        let tls = target("https://a/b");
        assert_eq!((tls.is_tls, tls.port, tls.authority().as_str()), (true, 443, "a"));
        assert_eq!(target("https://a:80/b").to_string(), "https://a:80/b");
        assert_eq!(target("http://a/b/").file_name(), None);
    }

    #[test]
    fn urls_that_cannot_be_fetched_are_refused() {
        for bad in [
            "",
            "a",
            "a/b",
            "/b",
            "ftp://a/b",
            "http://",
            "http:///b",
            "http://u:p@a/",
            "http://a:0/",
            "http://a:99999/",
            "http://a b/",
            "http://,[::1]/",
            "http://[x]/",
            "http://a,b/",
            "http://a/b c",
        ] {
            assert!(matches!(Target::parse(bad), Err(NetError::Url { .. })), "{bad:?}");
        }
    }

    #[test]
    fn redirects_lead_where_the_standard_says() {
        let from = target("http://a:81/b/c/d?q");
        for (location, to) in [
            ("http://x/y", "http://x/y"),
            ("//x/y", "http://x/y"),
            ("/y", "http://a:81/y"),
            ("y", "http://a:81/b/c/y"),
            ("../y", "http://a:81/b/y"),
            ("../../../y", "http://a:81/y"),
            ("./y/.", "http://a:81/b/c/y/"),
            ("..", "http://a:81/b/"),
            ("?z", "http://a:81/b/c/d?z"),
            ("y?z:1#f", "http://a:81/b/c/y?z:1"),
        ] {
            assert_eq!(from.join(location).unwrap().to_string(), to, "{location}");
        }
        assert_eq!(from.join("https://x/").unwrap().to_string(), "https://x/");
        assert_eq!(target("https://x/a").join("//y/b").unwrap().to_string(), "https://y/b");
        assert!(from.join("javascript:x").is_err());
    }
}
