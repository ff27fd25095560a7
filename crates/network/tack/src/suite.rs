//! The cipher suites of connections, and their names in Noise.

use aws_lc_rs::aead::{AES_256_GCM, Algorithm, CHACHA20_POLY1305};
use snow::params::NoiseParams;

/// The supported cipher suites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suite {
    Aes256Gcm,
    ChaChaPoly,
}

impl Suite {
    /// The faster one on this processor: AES if there are instructions for it.
    pub fn fastest() -> Self {
        #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
        let has_aes = std::arch::is_x86_feature_detected!("aes");
        #[cfg(target_arch = "aarch64")]
        let has_aes = std::arch::is_aarch64_feature_detected!("aes");
        #[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64")))]
        let has_aes = false;
        if has_aes { Self::Aes256Gcm } else { Self::ChaChaPoly }
    }

    /// Its code in the handshake.
    pub fn code(self) -> u8 {
        match self {
            Self::Aes256Gcm => 1,
            Self::ChaChaPoly => 2,
        }
    }

    /// The suite with this code.
    pub fn from_code(code: u8) -> Option<Self> {
        [Self::Aes256Gcm, Self::ChaChaPoly].into_iter().find(|suite| suite.code() == code)
    }

    pub fn algorithm(self) -> &'static Algorithm {
        match self {
            Self::Aes256Gcm => &AES_256_GCM,
            Self::ChaChaPoly => &CHACHA20_POLY1305,
        }
    }

    pub fn params(self) -> NoiseParams {
        let name = match self {
            Self::Aes256Gcm => "Noise_XX_25519_AESGCM_BLAKE2s",
            Self::ChaChaPoly => "Noise_XX_25519_ChaChaPoly_BLAKE2s",
        };
        name.parse().expect("a name of the Noise specification")
    }
}
