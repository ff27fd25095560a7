//! The certificate of QUIC servers: both ends make the same one from a key that everybody knows, so nothing has to be carried
//! from one to the other. It protects nothing, and need not: these programs move zeros between hosts of one machine.

use anyhow::Result;

/// Name that the certificate is for.
pub const NAME: &str = "localhost";
/// Prefix of the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410 section 7).
const PKCS8_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// A certificate and its key.
pub struct Certificate {
    /// As text.
    pub pem: String,
    pub key_pem: String,
    /// As bytes.
    pub der: Vec<u8>,
    pub key_der: Vec<u8>,
}

impl Certificate {
    /// The one that there is: signatures by Ed25519 are the same each time.
    pub fn known() -> Result<Self> {
        let key_der = [&PKCS8_PREFIX[..], &[7; 32]].concat();
        let key = rcgen::KeyPair::try_from(key_der.as_slice())?;
        let certificate = rcgen::CertificateParams::new(vec![NAME.to_owned()])?.self_signed(&key)?;
        Ok(Self {
            pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            der: certificate.der().to_vec(),
            key_der,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_make_the_same() {
        assert_eq!(Certificate::known().unwrap().der, Certificate::known().unwrap().der);
    }
}
