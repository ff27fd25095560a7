//! TLS to servers. Files over TLS are not repaired: a placeholder within a record would end the connection.

use std::sync::{Arc, OnceLock};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::error::NetError;

/// A configuration with the root certificates that this machine trusts.
fn config() -> Result<Arc<ClientConfig>, String> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    CONFIG.get_or_init(make_config).clone()
}

fn make_config() -> Result<Arc<ClientConfig>, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map_or_else(|| "there are none".to_owned(), ToString::to_string);
        return Err(format!("this machine has no certificates of authorities: {why}"));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config =
        builder.map_err(|error| error.to_string())?.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Starts TLS with `host` over `tcp`.
///
/// # Errors
/// If the handshake fails, or no certificate authority that this machine trusts vouches for `host`.
pub async fn connect(host: &str, tcp: TcpStream) -> Result<TlsStream<TcpStream>, NetError> {
    let failed = |why: String| NetError::Tls { host: host.to_owned(), why };
    let name = ServerName::try_from(host.to_owned()).map_err(|error| failed(error.to_string()))?;
    let connector = TlsConnector::from(config().map_err(failed)?);
    connector.connect(name, tcp).await.map_err(|error| failed(error.to_string()))
}
