//! The browser's own encryption: PBKDF2 makes a key of the passphrase, AES-GCM encrypts with it.

use js_sys::{Array, Object, Reflect, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{Crypto, CryptoKey, SubtleCrypto};

use super::VaultError;
use super::sealed::Sealed;

/// Rounds of PBKDF2: some tenths of a second here, and as long for every guess of a passphrase.
const ITERATIONS: u32 = 600_000;
/// Bytes of salt.
const SALT: usize = 16;
/// Bytes of AES-GCM's initialisation vector.
const VECTOR: usize = 12;

/// Encrypts a text.
pub(super) async fn seal(plain: &str, passphrase: &str) -> Result<Sealed, VaultError> {
    let (mut salt, mut vector) = (vec![0; SALT], vec![0; VECTOR]);
    let crypto = crypto()?;
    for bytes in [&mut salt, &mut vector] {
        crypto
            .get_random_values_with_u8_array(bytes)
            .map_err(|error| none(&error))?;
    }
    let key = key(passphrase, &salt, ITERATIONS).await?;
    let content = crypto
        .subtle()
        .encrypt_with_object_and_u8_array(&gcm(&vector), &key, plain.as_bytes())
        .map_err(|error| none(&error))?;
    let content = JsFuture::from(content).await.map_err(|error| none(&error))?;
    Ok(Sealed {
        iterations: ITERATIONS,
        salt,
        vector,
        content: Uint8Array::new(&content).to_vec(),
    })
}

/// The text again.
pub(super) async fn open(sealed: &Sealed, passphrase: &str) -> Result<String, VaultError> {
    let key = key(passphrase, &sealed.salt, sealed.iterations).await?;
    let plain = subtle()?
        .decrypt_with_object_and_u8_array(&gcm(&sealed.vector), &key, &sealed.content)
        .map_err(|error| none(&error))?;
    // The tag does not fit: the browser says no more than that.
    let plain = JsFuture::from(plain)
        .await
        .map_err(|_| VaultError::WrongPassphrase)?;
    String::from_utf8(Uint8Array::new(&plain).to_vec()).map_err(|_| VaultError::Unreadable)
}

/// A key that the browser does not give out, made of a passphrase.
async fn key(passphrase: &str, salt: &[u8], iterations: u32) -> Result<CryptoKey, VaultError> {
    let subtle = subtle()?;
    let raw = Uint8Array::from(passphrase.as_bytes());
    let raw = subtle
        .import_key_with_str("raw", &raw, "PBKDF2", false, &usages(&["deriveKey"]))
        .map_err(|error| none(&error))?;
    let raw: CryptoKey = JsFuture::from(raw)
        .await
        .map_err(|error| none(&error))?
        .unchecked_into();
    let derivation = described(&[
        ("name", "PBKDF2".into()),
        ("hash", "SHA-256".into()),
        ("salt", Uint8Array::from(salt).into()),
        ("iterations", iterations.into()),
    ]);
    let purpose = described(&[("name", "AES-GCM".into()), ("length", 256.into())]);
    let key = subtle
        .derive_key_with_object_and_object(
            &derivation,
            &raw,
            &purpose,
            false,
            &usages(&["encrypt", "decrypt"]),
        )
        .map_err(|error| none(&error))?;
    let key = JsFuture::from(key).await.map_err(|error| none(&error))?;
    Ok(key.unchecked_into())
}

fn gcm(vector: &[u8]) -> Object {
    described(&[
        ("name", "AES-GCM".into()),
        ("iv", Uint8Array::from(vector).into()),
    ])
}

fn described(fields: &[(&str, JsValue)]) -> Object {
    let object = Object::new();
    for (name, value) in fields {
        // A plain object takes any field.
        let _ = Reflect::set(&object, &(*name).into(), value);
    }
    object
}

fn usages(names: &[&str]) -> JsValue {
    names
        .iter()
        .map(|name| JsValue::from(*name))
        .collect::<Array>()
        .into()
}

fn crypto() -> Result<Crypto, VaultError> {
    let missing = || VaultError::NoEncryption("it needs HTTPS or a page from this machine".into());
    let crypto = web_sys::window()
        .ok_or_else(missing)?
        .crypto()
        .map_err(|error| none(&error))?;
    // Pages from elsewhere over plain HTTP have random numbers, but no encryption.
    let subtle = Reflect::get(&crypto, &"subtle".into()).map_err(|error| none(&error))?;
    if subtle.is_undefined() {
        return Err(missing());
    }
    Ok(crypto)
}

fn subtle() -> Result<SubtleCrypto, VaultError> {
    Ok(crypto()?.subtle())
}

fn none(error: &JsValue) -> VaultError {
    let said = error.dyn_ref::<js_sys::Error>().map(js_sys::Error::message);
    VaultError::NoEncryption(said.map_or_else(|| format!("{error:?}"), String::from))
}
