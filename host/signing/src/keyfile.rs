//! Secret keys as files: a seed in 64 hex digits, or PKCS#8 PEM (RFC 5958, RFC 8410), sealed with a
//! passphrase (RFC 8018, PBES2) as OpenSSL reads and writes it.
//!
//! What is written here is sealed with scrypt (N = 2^14, r = 8, p = 5) and AES-256-CBC, the strongest
//! that OpenSSL opens without an option. Randomness comes from the caller, because this crate has none.
//!
//! Bounds: a file of at most 16 KiB; a key derivation of at most 256 MiB or 10 million rounds, so that a
//! file from elsewhere cannot hold the machine.

use pkcs8::der::asn1::OctetStringRef;
use pkcs8::der::{Decode as _, pem::PemLabel as _};
use pkcs8::pkcs5::EncryptionScheme;
use pkcs8::pkcs5::pbes2::{Kdf, Parameters};
use pkcs8::pkcs5::scrypt;
use pkcs8::{
    AlgorithmIdentifierRef, EncryptedPrivateKeyInfoRef, LineEnding, ObjectIdentifier, PrivateKeyInfoRef,
};
use zeroize::Zeroizing;

use crate::sign::SigningKey;

/// Ed25519 (RFC 8410, section 3).
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// The DER of an octet string of 32 bytes begins so.
const SEED_HEADER: [u8; 2] = [0x04, 0x20];

/// Longest file of a key.
const MAX_FILE: usize = 16 * 1024;

/// Most memory that deriving a key may take, bytes.
const MAX_MEMORY: u64 = 256 * 1024 * 1024;

/// Most rounds of PBKDF2.
const MAX_ROUNDS: u32 = 10_000_000;

/// Why a file gives no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileError {
    /// Neither 64 hex digits nor PEM of a PKCS#8 key.
    #[error("it is neither a seed of 64 hex digits nor a PKCS#8 key in PEM")]
    Unknown,
    /// The file is longer than a key is.
    #[error("it has {0} bytes; no key file is longer than {MAX_FILE}")]
    TooLarge(usize),
    /// The PEM or its contents are damaged.
    #[error("it is a damaged PKCS#8 file: {0}")]
    Damaged(String),
    /// The key is of another algorithm.
    #[error("it holds a key of the algorithm {0}; Toolgate signs with Ed25519 (1.3.101.112)")]
    Algorithm(String),
    /// It is sealed, and no passphrase was given.
    #[error("it is sealed with a passphrase")]
    Sealed,
    /// It does not open.
    #[error("it does not open with this passphrase")]
    Passphrase,
    /// Opening it would take more than is given.
    #[error("it asks for more memory or rounds to be opened than a key file should")]
    Costly,
}

/// Whether the text is a key that a passphrase opens.
pub fn is_sealed(text: &str) -> bool {
    text.trim_start().starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----")
}

impl SigningKey {
    /// Reads a key file: a seed, or PKCS#8 PEM with or without a passphrase.
    pub fn from_file_text(text: &str, passphrase: Option<&str>) -> Result<Self, KeyFileError> {
        if text.len() > MAX_FILE {
            return Err(KeyFileError::TooLarge(text.len()));
        }
        if !text.trim_start().starts_with("-----BEGIN ") {
            return Self::from_hex(text).map_err(|_| KeyFileError::Unknown);
        }
        let (label, document) = pkcs8::SecretDocument::from_pem(text.trim_start()).map_err(damaged)?;
        match label {
            label if label == PrivateKeyInfoRef::PEM_LABEL => Self::from_info(document.as_bytes()),
            label if label == EncryptedPrivateKeyInfoRef::PEM_LABEL => {
                let sealed = EncryptedPrivateKeyInfoRef::try_from(document.as_bytes()).map_err(damaged)?;
                let passphrase = passphrase.ok_or(KeyFileError::Sealed)?;
                check_cost(&sealed.encryption_algorithm)?;
                // A wrong passphrase shows as padding or as a document that is none; both are one thing here.
                let opened = sealed.decrypt(passphrase).map_err(|_| KeyFileError::Passphrase)?;
                Self::from_info(opened.as_bytes())
            }
            _ => Err(KeyFileError::Unknown),
        }
    }

    /// The key as PKCS#8 PEM, sealed with a passphrase. `random` is salt and initial vector and must be
    /// fresh for every file.
    pub fn to_sealed_pem(
        &self,
        passphrase: &str,
        random: &[u8; 32],
    ) -> Result<Zeroizing<String>, KeyFileError> {
        let (salt, iv) = random.split_at(16);
        let mut vector = [0; 16];
        vector.copy_from_slice(iv);
        let seed = Zeroizing::new(self.0.to_bytes());
        let mut nested = Zeroizing::new([0; 34]);
        let (header, body) = nested.split_at_mut(2);
        header.copy_from_slice(&SEED_HEADER);
        body.copy_from_slice(seed.as_slice());
        let secret = OctetStringRef::new(nested.as_slice()).map_err(damaged)?;
        let info = PrivateKeyInfoRef::new(AlgorithmIdentifierRef { oid: ED25519, parameters: None }, secret);
        let cost = scrypt::Params::new(14, 8, 5).map_err(damaged)?;
        let parameters = Parameters::generate_scrypt_aes256cbc(cost, salt, vector).map_err(damaged)?;
        let sealed = info.encrypt_with_params(parameters, passphrase).map_err(damaged)?;
        sealed.to_pem(EncryptedPrivateKeyInfoRef::PEM_LABEL, LineEnding::LF).map_err(damaged)
    }

    /// The seed as 64 hex digits with a line feed.
    pub fn to_seed_text(&self) -> Zeroizing<String> {
        let seed = Zeroizing::new(self.0.to_bytes());
        let digits = Zeroizing::new(hex::encode(seed.as_slice()));
        Zeroizing::new(format!("{}\n", digits.as_str()))
    }

    fn from_info(der: &[u8]) -> Result<Self, KeyFileError> {
        let info = PrivateKeyInfoRef::from_der(der).map_err(damaged)?;
        if info.algorithm.oid != ED25519 {
            return Err(KeyFileError::Algorithm(info.algorithm.oid.to_string()));
        }
        let seed = info.private_key.as_bytes().strip_prefix(&SEED_HEADER);
        let seed = seed.and_then(|seed| <&[u8; 32]>::try_from(seed).ok());
        seed.map(Self::from_seed).ok_or_else(|| KeyFileError::Damaged("the seed has not 32 bytes".to_owned()))
    }
}

fn check_cost(scheme: &EncryptionScheme) -> Result<(), KeyFileError> {
    let EncryptionScheme::Pbes2(parameters) = scheme else {
        return Err(KeyFileError::Damaged("it is sealed by an old scheme; PBES2 is read".to_owned()));
    };
    let bearable = match &parameters.kdf {
        Kdf::Scrypt(cost) => {
            let memory = u64::from(cost.block_size).saturating_mul(128).saturating_mul(cost.cost_parameter);
            memory.saturating_mul(u64::from(cost.parallelization.max(1))) <= MAX_MEMORY
        }
        Kdf::Pbkdf2(cost) => cost.iteration_count <= MAX_ROUNDS,
        _ => false,
    };
    if bearable { Ok(()) } else { Err(KeyFileError::Costly) }
}

fn damaged(error: impl std::fmt::Display) -> KeyFileError {
    KeyFileError::Damaged(error.to_string())
}

#[cfg(test)]
mod tests;
