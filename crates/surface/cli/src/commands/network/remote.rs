//! Paths on servers: `tack://[CODE@]HOST[:PORT]/PATH`.

use tacit_apps::SERVE_PORT;
use tacit_apps::pair::Code;

/// Prefix of a path on a server.
pub const SCHEME: &str = "tack://";

/// A path on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// The server as HOST:PORT.
    pub server: String,
    pub path: String,
    /// The code of the server's invitation.
    pub code: Option<Code>,
}

/// Parses `text` as a path on a server; `None` for a local path.
pub fn remote(text: &str) -> Result<Option<Remote>, String> {
    let Some(rest) = text.strip_prefix(SCHEME) else { return Ok(None) };
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    let wrong = || format!("{text}: a remote path is {SCHEME}[CODE@]HOST[:PORT]/PATH");
    let (code, host) = match place.split_once('@') {
        Some((code, host)) => {
            (Some(code.parse::<Code>().map_err(|error| format!("{}: {error}", wrong()))?), host)
        }
        None => (None, place),
    };
    let server = server(host, SERVE_PORT).ok_or_else(wrong)?;
    Ok(Some(Remote { server, path: without_dots(path), code }))
}

/// `path` without a slash in front and without `.`, which is no name: `DIR/.` is `DIR/`, as for rsync.
fn without_dots(path: &str) -> String {
    let mut names: Vec<_> = path.split('/').filter(|name| *name != ".").collect();
    if path.ends_with("/.") {
        names.push("");
    }
    names.join("/").trim_start_matches('/').to_owned()
}

/// Adds the default port to `host` if it has none; `None` if `host` is not valid.
pub fn server(host: &str, port: u16) -> Option<String> {
    let is_bare = host.rsplit(']').next().is_some_and(|end| !end.contains(':'));
    let server = if is_bare { format!("{host}:{port}") } else { host.to_owned() };
    let (name, port) = server.rsplit_once(':')?;
    let is_one = !name.is_empty() && (!name.contains(':') || name.starts_with('['));
    let is_host =
        is_one && !name.contains(['@', ' ', '?', '#', '/']) && port.parse().is_ok_and(|port: u16| port > 0);
    is_host.then(|| server.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_on_a_server_has_a_host_a_port_and_a_path() {
        for (text, server, path) in [
            ("tack://box/a/b", "box:4433", "a/b"),
            ("tack://Box:99", "box:99", ""),
            ("tack://[::1]/", "[::1]:4433", ""),
            ("tack://[::1]:99//a/", "[::1]:99", "a/"),
            ("tack://box/.", "box:4433", ""),
            ("tack://box/./a/./b/.", "box:4433", "a/b/"),
            ("tack://box/.a/b.", "box:4433", ".a/b."),
        ] {
            let wanted = Remote { server: server.into(), path: path.into(), code: None };
            assert_eq!(remote(text), Ok(Some(wanted)), "{text}");
        }
        for wrong in
            ["tack://", "tack:///a", "tack://box:0/a", "tack://::1/a", "tack://me@box/a", "tack://box:x/"]
        {
            assert!(remote(wrong).is_err(), "{wrong}");
        }
        assert_eq!(remote("a:b/c"), Ok(None), "a file here may have any name");
        let invited = remote("tack://482-913-057@box:99/a@b").unwrap().unwrap();
        assert_eq!((invited.server.as_str(), invited.path.as_str()), ("box:99", "a@b"));
        assert_eq!(invited.code, Some("482913057".parse().unwrap()));
    }
}
